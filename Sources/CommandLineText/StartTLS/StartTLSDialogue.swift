/// The talk in the clear that ends with TLS: bytes in, orders out.
///
/// What a server says in the clear is not to be believed further than that it agrees: anything behind its consent is an
/// error, for it would else be taken for something said under TLS (RFC 3207 §6).
package struct StartTLSDialogue: Sendable {
    package enum Order: Sendable, Equatable {
        case send([UInt8])
        case read
        case secure
        /// The server does not agree; the text says how.
        case refused(String)
        /// What came is no answer in this protocol.
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

    /// - Returns: what to do if the dialogue is over; `nil` to go on.
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
