/// State machine of the plaintext dialogue before STARTTLS: takes bytes, returns actions.
///
/// Plaintext after the server's consent is an error, because it would be taken for data received over TLS
/// (RFC 3207 §6).
package struct StartTLSDialogue: Sendable {
    package enum Action: Sendable, Equatable {
        case send([UInt8])
        case read
        case secure
        /// The server refused; with its response.
        case refused(String)
        /// The response violates the protocol; with a description.
        case invalid(String)
    }

    /// Maximum number of bytes skipped and buffered.
    private static let limit = 64 << 10

    private var steps: [StartTLSStep]
    private var unread: [UInt8] = []
    private var skippedBytes = 0
    private var sawKeyword = false
    private var isInMultilineReply = false

    package init(_ mode: StartTLSMode) {
        self.steps = mode.steps
    }

    package mutating func received(_ bytes: [UInt8]) {
        self.unread += bytes
    }

    package mutating func nextAction() -> Action {
        while let step = self.steps.first {
            switch step {
            case .send(let line):
                self.steps.removeFirst()
                return .send(Array("\(line)\r\n".utf8))
            case .sendBytes(let bytes):
                self.steps.removeFirst()
                return .send(bytes)
            case .nextByte(let byte):
                guard let first = self.unread.first else { return .read }
                self.unread.removeFirst()
                guard first == byte else { return .refused("the server does not offer TLS") }
                self.steps.removeFirst()
            case .reply, .replyOffering, .line, .lineOffering, .nextLine:
                switch self.nextLine() {
                case .some(let line): if let action = self.handle(line, step) { return action }
                case .none: return self.isOverLimit ? .invalid("the server sent too much data before TLS") : .read
                }
            }
        }
        guard self.unread.isEmpty else {
            return .invalid("the server sent \(self.unread.count) bytes of plaintext after accepting TLS")
        }
        return .secure
    }

    private var isOverLimit: Bool { self.unread.count + self.skippedBytes > Self.limit }

    private mutating func nextLine() -> String? {
        guard !self.isOverLimit, let end = self.unread.firstIndex(of: 0x0A) else { return nil }
        var line = self.unread[..<end]
        if line.last == 0x0D { line.removeLast() }
        let text = String(decoding: line, as: UTF8.self)
        self.unread.removeSubrange(...end)
        self.skippedBytes += end + 1
        return text
    }

    /// - Returns: the final action; `nil` to continue.
    private mutating func handle(_ line: String, _ step: StartTLSStep) -> Action? {
        switch step {
        case .reply(let code): return self.handleReply(line, code: code, keyword: nil)
        case .replyOffering(let code, let keyword): return self.handleReply(line, code: code, keyword: keyword)
        case .line(let good, let bad): return self.handleLine(line, good: good, bad: bad, word: nil)
        case .lineOffering(let word, let good, let bad): return self.handleLine(line, good: good, bad: bad, word: word)
        case .nextLine(let start):
            guard line.hasPrefix(start) else { return .refused(line) }
            self.advance()
            return nil
        case .send, .sendBytes, .nextByte: return nil
        }
    }

    private mutating func handleReply(_ line: String, code: String, keyword: String?) -> Action? {
        let digits = line.prefix(3)
        guard digits.utf8.count == 3, digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
            // FTP allows lines without a code within a multiline reply (RFC 959 §4.2).
            return self.isInMultilineReply ? nil : .invalid("invalid reply: \(line)")
        }
        guard digits == code else { return .refused(line) }
        let text = line.dropFirst(4)
        if let keyword, text.split(separator: " ").first?.uppercased() == keyword { self.sawKeyword = true }
        guard line.dropFirst(3).first != "-" else {
            self.isInMultilineReply = true
            return nil
        }
        guard keyword == nil || self.sawKeyword else { return .refused("the server does not offer STARTTLS") }
        self.advance()
        return nil
    }

    private mutating func handleLine(_ line: String, good: [String], bad: [String], word: String?) -> Action? {
        if bad.contains(where: { Self.begins(line, with: $0) }) { return .refused(line) }
        if let word, line.uppercased().contains(word) { self.sawKeyword = true }
        guard good.contains(where: { Self.begins(line, with: $0) }) else { return nil }
        guard word == nil || self.sawKeyword else { return .refused("the server does not offer STARTTLS") }
        self.advance()
        return nil
    }

    /// Case-insensitive, as commands and replies of these protocols are.
    private static func begins(_ line: String, with start: String) -> Bool {
        line.uppercased().hasPrefix(start.uppercased())
    }

    private mutating func advance() {
        self.steps.removeFirst()
        self.isInMultilineReply = false
        self.sawKeyword = false
    }
}

/// The protocol used to request STARTTLS.
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
    /// Any line-based protocol.
    /// - Parameters:
    ///   - greeting: prefix of the line that the server sends first; `nil` if it sends none.
    ///   - request: line that requests TLS, without terminator.
    ///   - consent: prefix of the response that accepts TLS.
    case line(greeting: String?, request: String, consent: String)

    private static let named: [String: StartTLSMode] = [
        "smtp": .smtp, "imap": .imap, "pop3": .pop3, "ftp": .ftp, "nntp": .nntp, "sieve": .sieve, "postgres": .postgres,
    ]

    /// Accepted forms, for help texts.
    package static let forms = "smtp, imap, pop3, ftp, nntp, sieve, postgres or line:[GREETING:]REQUEST:CONSENT"

    /// - Returns: `nil` for any other text.
    package init?(_ text: String) {
        if let known = Self.named[text] {
            self = known
            return
        }
        var parts = text.split(separator: ":", omittingEmptySubsequences: false).map(String.init)
        guard text.utf8.allSatisfy({ (0x20...0x7E).contains($0) }), parts.first == "line",
            (3...4).contains(parts.count), !parts.contains("")
        else { return nil }
        let consent = parts.removeLast()
        let request = parts.removeLast()
        self = .line(greeting: parts.count == 2 ? parts[1] : nil, request: request, consent: consent)
    }
}

/// One step of the dialogue before TLS.
enum StartTLSStep: Sendable, Equatable {
    case send(String)
    case sendBytes([UInt8])
    /// Expect a reply with this code; a space after the code marks the last line (RFC 5321 §4.2.1).
    case reply(String)
    /// Like `reply`, and one line must be this keyword.
    case replyOffering(String, keyword: String)
    /// Skip lines until one has a prefix of `good`; a prefix of `bad` is a refusal.
    case line(good: [String], bad: [String])
    /// Like `line`, and a skipped line must contain this word.
    case lineOffering(String, good: [String], bad: [String])
    /// The next line must have this prefix.
    case nextLine(String)
    case nextByte(UInt8)
}

extension StartTLSMode {
    var steps: [StartTLSStep] {
        switch self {
        case .smtp:
            [
                .reply("220"), .send("EHLO localhost"), .replyOffering("250", keyword: "STARTTLS"),
                .send("STARTTLS"), .reply("220"),
            ]
        case .imap:
            // STARTTLS is not allowed after PREAUTH (RFC 9051 §6.2.1).
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
