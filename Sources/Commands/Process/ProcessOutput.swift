import Foundation
import GatewayCore
import StreamTransport
import Synchronization

/// Standard output and standard error of the process. Write errors (closed descriptor, full disk, closed pipe) are
/// ignored.
///
/// A client command blocks on a slow reader, as programs in pipes do. A gateway never blocks: a separate thread writes.
enum ProcessOutput {
    private static let isBlockingFlag = Atomic<Bool>(true)
    private static let output = LogWriter { _ = StandardOutput.write($0) }
    private static let errors = LogWriter()

    /// Whether writing blocks until the reader accepts the data. `false` in a gateway.
    static var isBlocking: Bool {
        get { self.isBlockingFlag.load(ordering: .relaxed) }
        set { self.isBlockingFlag.store(newValue, ordering: .relaxed) }
    }

    /// Writes lines to standard output, in one write.
    static func print(_ text: String) {
        if let host = HostProcess.current {
            _ = host.output(Array(text.utf8))
            return
        }
        self.isBlocking ? self.write(text, to: .standardOutput) : self.output.log(Self.withoutNewline(text))
    }

    /// Writes `text` to standard error unchanged, in one write.
    static func printError(_ text: String) {
        if let host = HostProcess.current { return host.errors(text) }
        self.isBlocking ? self.write(text, to: .standardError) : self.errors.log(Self.withoutNewline(text))
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

    private static func write(_ text: String, to handle: FileHandle) {
        // Not `write(_:)`, which traps on a write error.
        try? handle.write(contentsOf: Data(text.utf8))
    }
}
