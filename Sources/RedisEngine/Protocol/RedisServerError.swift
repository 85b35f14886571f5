import WireText

/// An error that the server answered with. Its first word is the code; the rest is text for humans.
package struct RedisServerError: Error, Equatable, Sendable, CustomStringConvertible {
    /// Codes that a client decides on.
    package enum Code: Equatable, Sendable {
        /// Another node of the cluster serves the slot: send there from now on.
        case moved(slot: Int, RedisRedirection)
        /// Another node serves this key while the slot migrates: send there once, after `ASKING`.
        case ask(slot: Int, RedisRedirection)
        /// Several keys whose slot migrates: try again soon.
        case tryAgain
        case crossSlot
        case clusterDown
        /// The server is a replica: it was the primary before a failover, or never.
        case readOnly
        /// The server is a replica without its primary.
        case masterDown
        /// The server reads its data from disk.
        case loading
        /// A script runs for too long.
        case busy
        /// `EVALSHA` of a script that the server does not have.
        case noScript
        /// Above `maxmemory`.
        case outOfMemory
        case noAuthentication
        case wrongPassword
        case noPermission
        case noProtocol
        case wrongType
        case generic
        /// Any other code, as the server wrote it.
        case other
    }

    package let code: Code
    /// The first word. At most 64 bytes.
    package let codeWord: String
    /// Behind the code; invalid UTF-8 is replaced. It may quote the command, so a failed sign-in must not log it.
    package let message: String

    /// Longest message in a description, in characters.
    private static let longestDescription = 200

    package var description: String {
        let text = self.message.prefix(Self.longestDescription)
        return text.isEmpty ? self.codeWord : "\(self.codeWord) \(text)"
    }

    /// - Parameter text: of the error, without its type byte and line end.
    package init(_ text: some Collection<UInt8>) {
        let word = text.prefix { $0 != UInt8(ascii: " ") }
        let rest = String(decoding: text.dropFirst(word.count + 1), as: UTF8.self)
        self.codeWord = String(decoding: word.prefix(64), as: UTF8.self)
        self.message = rest
        self.code = Self.code(self.codeWord, rest)
    }

    /// Without the message, which may quote a password.
    package var withoutMessage: RedisServerError { RedisServerError(self.codeWord.utf8) }

    private static func code(_ word: String, _ message: String) -> Code {
        switch word {
        case "MOVED", "ASK":
            guard let (slot, target) = Self.redirection(message) else { return .other }
            return word == "ASK" ? .ask(slot: slot, target) : .moved(slot: slot, target)
        case "TRYAGAIN": return .tryAgain
        case "CROSSSLOT": return .crossSlot
        case "CLUSTERDOWN": return .clusterDown
        case "READONLY": return .readOnly
        case "MASTERDOWN": return .masterDown
        case "LOADING": return .loading
        case "BUSY": return .busy
        case "NOSCRIPT": return .noScript
        case "OOM": return .outOfMemory
        case "NOAUTH": return .noAuthentication
        case "WRONGPASS": return .wrongPassword
        case "NOPERM": return .noPermission
        case "NOPROTO": return .noProtocol
        case "WRONGTYPE": return .wrongType
        case "ERR": return .generic
        default: return .other
        }
    }

    /// `3999 127.0.0.1:6381`; the host may be missing, or contain colons.
    private static func redirection(_ message: String) -> (Int, RedisRedirection)? {
        let words = message.split(separator: " ", maxSplits: 1)
        guard words.count == 2, let slot = String(words[0]).decimal, slot < RedisKeySlot.count,
            let colon = words[1].lastIndex(of: ":"),
            let port = String(words[1][words[1].index(after: colon)...]).decimal, (1...65535).contains(port)
        else { return nil }
        return (Int(slot), RedisRedirection(host: String(words[1][..<colon]), port: Int(port)))
    }

    /// Whether the server did not know the command at all, as those before Redis 6 do not know `HELLO`.
    var isUnknownCommand: Bool {
        self.code == .generic && self.message.beginsIgnoringCase("unknown command")
    }
}

/// Where a node of a cluster sends its client.
package struct RedisRedirection: Equatable, Sendable {
    /// `nil` means the host of the node that answered: it does not know its own name.
    package let host: String?
    package let port: Int

    package init(host: String, port: Int) {
        self.host = host.isEmpty || host == "?" ? nil : host
        self.port = port
    }

    /// - Parameter answering: the node that answered.
    package func resolved(from answering: RedisEndpoint) -> RedisEndpoint {
        RedisEndpoint(host: self.host ?? answering.host, port: self.port)
    }
}

/// Host and port of a server.
package struct RedisEndpoint: Hashable, Sendable, CustomStringConvertible {
    /// A name, an IPv4 address, or an IPv6 address without brackets.
    package let host: String
    package let port: Int

    package init(host: String, port: Int) {
        self.host = host
        self.port = port
    }

    package var description: String {
        self.host.utf8.contains(UInt8(ascii: ":")) ? "[\(self.host)]:\(self.port)" : "\(self.host):\(self.port)"
    }
}
