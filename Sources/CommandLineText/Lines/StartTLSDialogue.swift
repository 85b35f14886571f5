/// The plaintext dialogue before TLS, as a machine: takes bytes, returns actions.
///
/// Nothing that a server sends in plaintext is trusted but its consent: bytes behind it are an error, because they
/// would be taken for data under TLS (RFC 3207 §6).
package struct StartTLSDialogue: Sendable {
    package enum Order: Sendable, Equatable {
        case send([UInt8])
        case read
        case secure
        /// The server does not agree; the text says how.
        case refused(String)
        /// The bytes are no answer of this protocol.
        case broken(String)
    }

    /// Bytes of lines read over and of a line without an end.
    private static let limit = 64 << 10

    private var turns: [StartTLSTurn]
    private var unread: [UInt8] = []
    private var readOver = 0
    private var sawKeyword = false

    package init(_ mode: StartTLSMode) {
        self.turns = mode.turns
    }

    package mutating func received(_ bytes: [UInt8]) {
        self.unread += bytes
    }

    package mutating func nextOrder() -> Order {
        while let turn = self.turns.first {
            switch turn {
            case .send(let line):
                self.turns.removeFirst()
                return .send(Array("\(line)\r\n".utf8))
            case .sendBytes(let bytes):
                self.turns.removeFirst()
                return .send(bytes)
            case .nextByte(let byte):
                guard let first = self.unread.first else { return .read }
                self.unread.removeFirst()
                guard first == byte else { return .refused("the server does not offer TLS") }
                self.turns.removeFirst()
            case .reply, .replyOffering, .line, .lineOffering, .nextLine:
                switch self.nextLine() {
                case .some(let line): if let order = self.heard(line, turn) { return order }
                case .none: return self.isOverLimit ? .broken("it says too much before TLS") : .read
                }
            }
        }
        guard self.unread.isEmpty else {
            return .broken("\(self.unread.count) bytes in the clear stand behind the server's consent to TLS")
        }
        return .secure
    }

    private var isOverLimit: Bool { self.unread.count + self.readOver > Self.limit }

    private mutating func nextLine() -> String? {
        guard !self.isOverLimit, let end = self.unread.firstIndex(of: 0x0A) else { return nil }
        var line = self.unread[..<end]
        if line.last == 0x0D { line.removeLast() }
        let text = String(decoding: line, as: UTF8.self)
        self.unread.removeSubrange(...end)
        self.readOver += end + 1
        return text
    }

    /// - Returns: the action if the dialogue is over; `nil` to continue.
    private mutating func heard(_ line: String, _ turn: StartTLSTurn) -> Order? {
        switch turn {
        case .reply(let code): return self.heardReply(line, code: code, keyword: nil)
        case .replyOffering(let code, let keyword): return self.heardReply(line, code: code, keyword: keyword)
        case .line(let good, let bad): return self.heardLine(line, good: good, bad: bad, word: nil)
        case .lineOffering(let word, let good, let bad): return self.heardLine(line, good: good, bad: bad, word: word)
        case .nextLine(let start):
            guard line.hasPrefix(start) else { return .refused(line) }
            self.passed()
            return nil
        case .send, .sendBytes, .nextByte: return nil
        }
    }

    private mutating func heardReply(_ line: String, code: String, keyword: String?) -> Order? {
        let digits = line.prefix(3)
        guard digits.utf8.count == 3, digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
            // FTP lets the lines in the middle of a reply be without their number (RFC 959 §4.2).
            return self.readOverInReply ? nil : .broken("this is no reply: \(line)")
        }
        guard digits == code else { return .refused(line) }
        let text = line.dropFirst(4)
        if let keyword, text.split(separator: " ").first?.uppercased() == keyword { self.sawKeyword = true }
        guard line.dropFirst(3).first != "-" else {
            self.readOverInReply = true
            return nil
        }
        guard keyword == nil || self.sawKeyword else { return .refused("the server does not offer STARTTLS") }
        self.passed()
        return nil
    }

    private mutating func heardLine(_ line: String, good: [String], bad: [String], word: String?) -> Order? {
        if bad.contains(where: { Self.begins(line, with: $0) }) { return .refused(line) }
        if let word, line.uppercased().contains(word) { self.sawKeyword = true }
        guard good.contains(where: { Self.begins(line, with: $0) }) else { return nil }
        guard word == nil || self.sawKeyword else { return .refused("the server does not offer STARTTLS") }
        self.passed()
        return nil
    }

    /// Commands and answers of these protocols have no case.
    private static func begins(_ line: String, with start: String) -> Bool {
        line.uppercased().hasPrefix(start.uppercased())
    }

    /// Within a reply of several lines.
    private var readOverInReply = false

    private mutating func passed() {
        self.turns.removeFirst()
        self.readOverInReply = false
        self.sawKeyword = false
    }
}

/// The protocol in which a server is asked to go over to TLS.
package enum StartTLSMode: Sendable, Equatable {
    /// RFC 3207.
    case smtp
    /// RFC 9051 §6.2.1.
    case imap
    /// RFC 2595 §4.
    case pop3
    /// RFC 4217 §4.1.
    case ftp
    /// RFC 4642.
    case nntp
    /// RFC 5804 §2.2.
    case sieve
    /// The SSLRequest of PostgreSQL's frontend protocol.
    case postgres
    /// Any protocol of lines.
    /// - Parameters:
    ///   - greeting: how the line begins that the server says first; `nil` if it says nothing.
    ///   - request: the line that asks for TLS, without its end.
    ///   - consent: how the answer begins if the server agrees.
    case line(greeting: String?, request: String, consent: String)

    /// Names for a help text.
    package static let forms = "smtp, imap, pop3, ftp, nntp, sieve, postgres or line:[GREETING:]REQUEST:CONSENT"

    /// - Returns: `nil` for any other text.
    package init?(_ text: String) {
        switch text {
        case "smtp": self = .smtp
        case "imap": self = .imap
        case "pop3": self = .pop3
        case "ftp": self = .ftp
        case "nntp": self = .nntp
        case "sieve": self = .sieve
        case "postgres": self = .postgres
        default:
            var parts = text.split(separator: ":", omittingEmptySubsequences: false).map(String.init)
            guard text.utf8.allSatisfy({ (0x20...0x7E).contains($0) }), parts.first == "line",
                (3...4).contains(parts.count), !parts.contains("")
            else { return nil }
            let consent = parts.removeLast()
            let request = parts.removeLast()
            self = .line(greeting: parts.count == 2 ? parts[1] : nil, request: request, consent: consent)
        }
    }
}

/// One step of the talk before TLS.
enum StartTLSTurn: Sendable, Equatable {
    case send(String)
    case sendBytes([UInt8])
    /// A reply of lines with this number, the last one with a space behind it (RFC 5321 §4.2.1).
    case reply(String)
    /// As `reply`, and one of the lines is this keyword.
    case replyOffering(String, keyword: String)
    /// Lines are read over until one begins with one of `good`; one that begins with one of `bad` is a refusal.
    case line(good: [String], bad: [String])
    /// As `line`, and one of the lines read over holds this word.
    case lineOffering(String, good: [String], bad: [String])
    /// The very next line begins with this.
    case nextLine(String)
    case nextByte(UInt8)
}

extension StartTLSMode {
    var turns: [StartTLSTurn] {
        switch self {
        case .smtp:
            [
                .reply("220"), .send("EHLO localhost"), .replyOffering("250", keyword: "STARTTLS"),
                .send("STARTTLS"), .reply("220"),
            ]
        case .imap:
            // A server that greets with PREAUTH cannot be asked any more (RFC 9051 §6.2.1).
            [
                .line(good: ["* OK"], bad: ["* PREAUTH", "* BYE"]), .send("s1 STARTTLS"),
                .line(good: ["s1 OK"], bad: ["s1 NO", "s1 BAD", "* BYE"]),
            ]
        case .pop3: [.nextLine("+OK"), .send("STLS"), .nextLine("+OK")]
        case .ftp: [.reply("220"), .send("AUTH TLS"), .reply("234")]
        case .nntp: [.line(good: ["200", "201"], bad: ["4", "5"]), .send("STARTTLS"), .reply("382")]
        case .sieve:
            [
                .lineOffering("STARTTLS", good: ["OK"], bad: ["NO", "BYE"]), .send("STARTTLS"),
                .line(good: ["OK"], bad: ["NO", "BYE"]),
            ]
        case .postgres: [.sendBytes([0, 0, 0, 8, 0x04, 0xD2, 0x16, 0x2F]), .nextByte(UInt8(ascii: "S"))]
        case .line(let greeting, let request, let consent):
            (greeting.map { [.line(good: [$0], bad: [])] } ?? []) + [.send(request), .nextLine(consent)]
        }
    }
}
