import COpenSSL
import Synchronization

/// Writes key log lines to their destination. Thread-safe.
@safe
final class KeyLogWriter: Sendable {
    private let lines: (@Sendable (String) -> Void)?
    /// Used under `turn` only.
    nonisolated(unsafe) private let file: OpaquePointer?
    /// Serializes writes, so that lines of different threads are not interleaved.
    private let turn = Mutex(())

    /// - Throws: `.configuration` if the file cannot be opened for appending.
    init(_ keyLog: KeyLog) throws(TLSFailure) {
        switch keyLog {
        case .lines(let lines):
            self.lines = lines
            unsafe self.file = nil
        case .file(let path):
            ErrorQueue.clear()
            guard let file = unsafe sluice_bio_appending_in_private(path) else {
                throw ErrorQueue.failure(.configuration, "the key log cannot be opened", file: path)
            }
            self.lines = nil
            unsafe self.file = file
        }
    }

    deinit {
        unsafe BIO_free(self.file)
    }

    func write(_ line: String) {
        if let lines = self.lines { return lines(line) }
        self.turn.withLock { _ in
            unsafe BIO_puts(self.file, line + "\n")
            unsafe sluice_bio_flush(self.file)
        }
        // A full disk must not fail the connection.
        ErrorQueue.clear()
    }
}
