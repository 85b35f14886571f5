import Foundation

/// Standard output and standard error of the process. Either may be closed, a full disk, or a pipe that nobody reads any
/// more; what cannot be written there is lost, and nothing else happens.
enum ProcessOutput {
    /// Writes `text` to standard output as it stands, in one piece.
    static func print(_ text: String) {
        self.write(text, to: .standardOutput)
    }

    /// Writes `text` to standard error as it stands, in one piece.
    static func say(_ text: String) {
        self.write(text, to: .standardError)
    }

    private static func write(_ text: String, to handle: FileHandle) {
        // Not `write(_:)`, which ends the process where the system refuses to take the bytes.
        try? handle.write(contentsOf: Data(text.utf8))
    }
}
