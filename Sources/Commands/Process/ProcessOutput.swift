import Foundation
import GatewayCore
import StreamTransport
import Synchronization

/// Standard output and standard error of the process. Either may be closed, on a full disk, or a pipe without a reader;
/// output that cannot be written is lost, without other effects.
///
/// A command that produces output waits for a slow reader, as programs in pipes do. A gateway never does: a separate
/// thread writes.
enum ProcessOutput {
    private static let isPatientNow = Atomic<Bool>(true)
    private static let output = LogWriter { _ = StandardOutput.write($0) }
    private static let errors = LogWriter()

    /// Whether the writer waits for the reader; not in a gateway.
    static var isPatient: Bool {
        get { self.isPatientNow.load(ordering: .relaxed) }
        set { self.isPatientNow.store(newValue, ordering: .relaxed) }
    }

    /// Writes lines to standard output, in one piece.
    static func print(_ text: String) {
        self.isPatient ? self.write(text, to: .standardOutput) : self.output.log(Self.withoutEnd(text))
    }

    /// Writes `text` to standard error unchanged, in one write.
    static func say(_ text: String) {
        self.isPatient ? self.write(text, to: .standardError) : self.errors.log(Self.withoutEnd(text))
    }

    /// Waits until all is written, but never long for a reader that takes nothing; for the end of the process.
    static func flush() {
        guard !self.isPatient else { return }
        self.output.flush()
        self.errors.flush()
    }

    /// A log's writer adds the end of a line itself.
    private static func withoutEnd(_ text: String) -> String {
        text.hasSuffix("\n") ? String(text.dropLast()) : text
    }

    private static func write(_ text: String, to handle: FileHandle) {
        // Not `write(_:)`, which ends the process where the system refuses to take the bytes.
        try? handle.write(contentsOf: Data(text.utf8))
    }
}
