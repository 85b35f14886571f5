/// A command to the client, typed as a line that begins with `/`.
package enum SlashCommand: Sendable, Equatable {
    /// Sends a Ping with this payload, at most 125 bytes of UTF-8.
    case ping(String)
    /// Sends a binary message; on a stream, the bytes.
    case binary([UInt8])
    /// Starts the closing handshake; half-closes a stream.
    case close(code: UInt16?, reason: String)
    case status
    case help

    /// Forms and effects of the commands, for `/help`.
    package static let summary: [(form: String, effect: String)] = [
        ("/ping [TEXT]", "send a Ping and print its round-trip time"),
        ("/binary HEX", "send bytes in hexadecimal, like 00 ff 7f"),
        ("/close [CODE [REASON]]", "close with 1000, or with another code and reason"),
        ("/status", "show the properties of the connection"),
        ("/help", "show this help"),
        ("//TEXT", "send text that begins with /"),
    ]

    private static let words = ["ping", "binary", "close", "status", "help"]
}

extension SlashCommand {
    /// Parses the text after the slash.
    init(_ text: Substring) throws(CommandError) {
        let word = text.prefix { $0 != " " }
        let rest = text.dropFirst(word.count).drop { $0 == " " }
        switch word {
        case "ping":
            guard rest.utf8.count <= 125 else { throw CommandError("a Ping payload has at most 125 bytes") }
            self = .ping(String(rest))
        case "binary":
            guard let bytes = HexText.bytes(rest), !bytes.isEmpty else {
                throw CommandError("/binary expects pairs of hexadecimal digits, like /binary 00 ff 7f")
            }
            self = .binary(bytes)
        case "close", "quit": self = try Self.close(rest)
        case "status": self = .status
        case "help", "?": self = .help
        default:
            let known = Self.words.map { "/\($0)" }.joined(separator: ", ")
            throw CommandError("unknown command /\(word); known: \(known). To send it as text, type //\(word)")
        }
    }

    private static func close(_ text: Substring) throws(CommandError) -> SlashCommand {
        let digits = text.prefix { $0 != " " }
        let reason = text.dropFirst(digits.count).drop { $0 == " " }
        guard !digits.isEmpty else { return .close(code: nil, reason: "") }
        guard let code = UInt16(digits), Self.mayBeSent(code) else {
            throw CommandError("a close code is 1000 to 1003, 1007 to 1014 or 3000 to 4999, like /close 4001 bye")
        }
        guard reason.utf8.count <= 123 else { throw CommandError("a close reason has at most 123 bytes") }
        return .close(code: code, reason: String(reason))
    }

    /// Whether a Close frame may carry this code (RFC 6455 §7.4).
    package static func mayBeSent(_ code: UInt16) -> Bool {
        switch code {
        case 1000...1003, 1007...1014, 3000...4999: true
        default: false
        }
    }
}

/// Why a slash command is invalid, and what to type instead.
package struct CommandError: Error, Equatable, CustomStringConvertible {
    package let description: String

    package init(_ description: String) {
        self.description = description
    }
}

/// A line typed on a terminal.
package enum TypedLine: Sendable, Equatable {
    case message(String)
    case command(SlashCommand)

    /// A line that begins with `/` is a command; one that begins with `//` is a message with the first `/` removed.
    package init(_ line: String) throws(CommandError) {
        guard line.hasPrefix("/") else {
            self = .message(line)
            return
        }
        let rest = line.dropFirst()
        self = rest.hasPrefix("/") ? .message(String(rest)) : .command(try SlashCommand(rest))
    }
}
