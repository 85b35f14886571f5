import GatewayCore
import StreamTransport
import Synchronization

/// Standard output and standard error of the process.
///
/// A client command blocks on a slow reader, as programs in pipes do, and fails if its output cannot be written. A gateway
/// never blocks: a separate thread writes, and write errors (closed descriptor, full disk, closed pipe) are ignored.
enum ProcessOutput {
    private static let isBlockingFlag = Atomic<Bool>(true)
    private static let output = LogWriter { _ = StandardOutput.write($0) }
    private static let errors = LogWriter()

    /// Whether writing errors blocks until the reader accepts the data. `false` in a gateway.
    static var isBlocking: Bool {
        get { self.isBlockingFlag.load(ordering: .relaxed) }
        set { self.isBlockingFlag.store(newValue, ordering: .relaxed) }
    }

    /// Writes the result of a command to standard output, in one write.
    /// - Throws: `ConnectFailure` when not all could be written.
    static func print(_ text: String) throws(ConnectFailure) {
        try StandardStreams.writeBlocking(Array(text.utf8))
    }

    /// Writes lines of a gateway to standard output, in one write. Never blocks; write errors are ignored.
    static func announce(_ text: String) {
        self.output.log(Self.withoutNewline(text))
    }

    /// Writes `text` to standard error unchanged, in one write. Write errors are ignored.
    static func printError(_ text: String) {
        if let host = HostProcess.current { return host.errors(text) }
        if self.isBlocking {
            _ = StandardError.write(Array(text.utf8))
        } else {
            self.errors.log(Self.withoutNewline(text))
        }
    }

    /// Waits until queued output is written, for a bounded time. Called before the process exits.
    static func flush() {
        guard !self.isBlocking else { return }
        self.output.flush()
        self.errors.flush()
    }

    /// `LogWriter` adds the newline itself.
    private static func withoutNewline(_ text: String) -> String {
        text.hasSuffix("\n") ? String(text.dropLast()) : text
    }
}
