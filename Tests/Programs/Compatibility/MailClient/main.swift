// MailClient HOST PORT: sends a message from standard input to an SMTP server, after STARTTLS.
import Foundation
import URLLoading

struct Refusal: Error {
    let command: String
    let reply: String
}

/// One SMTP session over a stream task.
struct Mail {
    let task: URLSessionStreamTask
    private var received = Data()

    init(_ task: URLSessionStreamTask) {
        self.task = task
    }

    /// Reads one reply, whose lines except the last have a hyphen after the code.
    private mutating func reply() async throws -> String {
        var text = ""
        while true {
            while let end = self.received.firstIndex(of: UInt8(ascii: "\n")) {
                let line = String(decoding: self.received[...end], as: UTF8.self)
                self.received = Data(self.received[self.received.index(after: end)...])
                text += line
                if line.dropFirst(3).first != "-" { return text }
            }
            let (data, atEOF) = try await self.task.readData(ofMinLength: 1, maxLength: 4096, timeout: 20)
            if let data = data { self.received.append(data) }
            if atEOF, !self.received.contains(UInt8(ascii: "\n")) { throw URLError(.networkConnectionLost) }
        }
    }

    @discardableResult
    mutating func command(_ text: String?, expecting code: String) async throws -> String {
        if let text = text { try await self.task.write(Data((text + "\r\n").utf8), timeout: 20) }
        let reply = try await self.reply()
        guard reply.hasPrefix(code) else { throw Refusal(command: text ?? "", reply: reply) }
        return reply
    }
}

let arguments = CommandLine.arguments
guard arguments.count == 3, let port = Int(arguments[2]) else {
    print("usage: MailClient HOST PORT < MESSAGE")
    exit(64)
}
var lines: [String] = []
while let line = readLine() { lines.append(line.hasPrefix(".") ? "." + line : line) }

do {
    let session = URLSession(configuration: .default)
    let task = session.streamTask(withHostName: arguments[1], port: port)
    task.resume()
    var mail = Mail(task)
    try await mail.command(nil, expecting: "220")
    let offers = try await mail.command("EHLO localhost", expecting: "250")
    guard offers.contains("STARTTLS") else { throw Refusal(command: "EHLO", reply: offers) }
    try await mail.command("STARTTLS", expecting: "220")
    task.startSecureConnection()
    try await mail.command("EHLO localhost", expecting: "250")
    try await mail.command("MAIL FROM:<sender@localhost>", expecting: "250")
    try await mail.command("RCPT TO:<receiver@localhost>", expecting: "250")
    try await mail.command("DATA", expecting: "354")
    try await mail.command((lines + ["."]).joined(separator: "\r\n"), expecting: "250")
    try await mail.command("QUIT", expecting: "221")
    task.closeWrite()
    task.closeRead()
    session.finishTasksAndInvalidate()
    print("delivered")
} catch {
    print("failed:", error)
    exit(1)
}
