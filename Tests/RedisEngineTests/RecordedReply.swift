import Testing

/// What a server sent for a command.
struct RecordedReply: CustomTestStringConvertible, Sendable {
    let command: String
    let bytes: [UInt8]

    var testDescription: String { self.command }

    /// - Parameter lines: of the protocol, each of which ends with CR LF on the wire.
    init(_ command: String, _ lines: String) {
        self.command = command
        self.bytes = Array(wire: lines)
    }

    static let all = Self.data + Self.pushes + Self.servers
}

extension [UInt8] {
    /// Lines of the protocol, each of which ends with CR LF on the wire.
    init(wire lines: String) {
        let lines = lines.split(separator: "\n", omittingEmptySubsequences: false)
        self = lines.flatMap { Array($0.utf8) + [0x0D, 0x0A] }
    }

    init(_ text: String) {
        self = Array(text.utf8)
    }
}
