import COpenSSL
import Synchronization

/// Writes key log lines to their destination. Thread-safe.
@safe
final class KeyLogWriter: Sendable {
    private let lines: (@Sendable (String) -> Void)?
    /// Called for the first line that cannot be written.
    private let failed: (@Sendable () -> Void)?
    /// Used under `turn` only.
    nonisolated(unsafe) private let file: OpaquePointer?
    /// Whether a line could not be written. Serializes writes, so that lines of different threads are not interleaved.
    private let turn = Mutex(false)

    /// - Throws: `.configuration` if the file cannot be opened for appending.
    init(_ keyLog: KeyLog) throws(TLSFailure) {
        switch keyLog {
        case .lines(let lines):
            self.lines = lines
            self.failed = nil
            unsafe self.file = nil
        case .file(let path, let failed):
            ErrorQueue.clear()
            guard let file = unsafe sluice_bio_appending_in_private(path) else {
                throw ErrorQueue.failure(.configuration, "the key log cannot be opened", file: path)
            }
            self.lines = nil
            self.failed = failed
            unsafe self.file = file
        }
    }

    deinit {
        unsafe BIO_free(self.file)
    }

    func write(_ line: String) {
        if let lines = self.lines { return lines(line) }
        let isFirstFailure = self.turn.withLock { hasFailed in
            let isWritten = unsafe BIO_puts(self.file, line + "\n") > 0 && sluice_bio_flush(self.file) == 1
            defer { hasFailed = hasFailed || !isWritten }
            return !isWritten && !hasFailed
        }
        // A full disk must not fail the connection.
        ErrorQueue.clear()
        if isFirstFailure { self.failed?() }
    }
}
