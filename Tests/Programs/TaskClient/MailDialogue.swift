import SessionTasks

/// As much of SMTP as handing over one message takes (RFC 5321), with STARTTLS (RFC 3207), on a stream task.
final class MailDialogue {
    /// No answer in so much time is a failure.
    private static let patience: Duration = .seconds(10)

    private let task: StreamTask
    private let readSize: Int
    private var unread: [UInt8] = []
    /// Keywords of the answer to the last EHLO.
    private(set) var extensions: Set<String> = []
    private(set) var lastCommand = ""

    init(over task: StreamTask, readSize: Int) {
        self.task = task
        self.readSize = readSize
    }

    func greet() async throws {
        _ = try await self.reply(expecting: 220)
    }

    func hello() async throws {
        let lines = try await self.command("EHLO client.localhost", expecting: 250)
        self.extensions = Set(lines.dropFirst().compactMap { $0.split(separator: " ").first.map { $0.uppercased() } })
    }

    func secure(_ settings: SecureSettings) async throws {
        try await self.command("STARTTLS", expecting: 220)
        guard self.unread.isEmpty else { throw MailFailure.injected(self.unread.count) }
        try await self.task.startSecureConnection(settings)
    }

    /// Sends the lines of a message, and the final full stop.
    func body(_ lines: [String]) async throws {
        for line in lines { try await self.write(line.hasPrefix(".") ? "." + line : line) }
        try await self.command(".", expecting: 250)
    }

    @discardableResult
    func command(_ text: String, expecting code: Int) async throws -> [String] {
        self.lastCommand = text.split(separator: " ").first.map(String.init) ?? text
        try await self.write(text)
        return try await self.reply(expecting: code)
    }

    /// Ends our direction of the stream.
    /// - Returns: whether the server then ended its own without another byte.
    func end() async throws -> Bool {
        self.task.closeWrite()
        let chunk = try await self.task.read(maximum: self.readSize, timeout: Self.patience)
        return chunk.isAtEnd && chunk.bytes.isEmpty && self.unread.isEmpty
    }

    private func write(_ line: String) async throws {
        try await self.task.write(Array((line + "\r\n").utf8), timeout: Self.patience)
    }

    /// - Returns: the texts of the reply's lines.
    private func reply(expecting code: Int) async throws -> [String] {
        var texts: [String] = []
        while true {
            let line = try await self.line()
            guard let found = Int(line.prefix(3)) else { throw MailFailure.malformedReply(line) }
            guard found == code else { throw MailFailure.refused(line) }
            texts.append(String(line.dropFirst(4)))
            if line.dropFirst(3).first != "-" { return texts }
        }
    }

    private func line() async throws -> String {
        while true {
            if let end = self.unread.firstIndex(of: 0x0A) {
                let line = self.unread[..<end].filter { $0 != 0x0D }
                self.unread.removeSubrange(...end)
                return String(decoding: line, as: UTF8.self)
            }
            guard self.unread.count < 65536 else { throw MailFailure.malformedReply("a line without an end") }
            let chunk = try await self.task.read(maximum: self.readSize, timeout: Self.patience)
            self.unread += chunk.bytes
            if chunk.isAtEnd, !self.unread.contains(0x0A) { throw MailFailure.endedEarly }
        }
    }
}
