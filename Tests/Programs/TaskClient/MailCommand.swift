import ArgumentParser
import SessionTasks
import StreamTransport
import TLSEngine

struct MailCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "mail", abstract: "Hand a message from standard input to an SMTP server, behind STARTTLS.")

    /// The report printed at the end.
    private struct Report: Encodable {
        var delivered = false
        var tls: String?
        /// The command that was the last to be sent, without its arguments.
        var step: String
        var error: String?
        /// Whether the server ended the stream cleanly after our own end of it.
        var endedInOrder = false
    }

    @Argument var host: String
    @Argument var port: UInt16
    @Option var from = "sender@localhost"
    @Option var to = "receiver@localhost"
    @Option(help: "Most bytes of one read. With 1, nothing behind a reply leaves the library with it.")
    var readSize = 4096
    @OptionGroup var trust: TrustOptions

    func run() async throws {
        var message: [String] = []
        while let line = readLine() { message.append(line) }
        let loops = try LoopGroup(count: 1)
        let task = StreamTask(to: OpeningTarget(.host(self.host, port: self.port)), on: loops.loops[0])
        let dialogue = MailDialogue(over: task, readSize: self.readSize)
        task.resume()
        var report = Report(step: "")
        do {
            try await self.deliver(message, dialogue)
            report.delivered = true
            report.endedInOrder = try await dialogue.end()
        } catch {
            report.error = "\(error)"
        }
        report.step = dialogue.lastCommand
        report.tls = task.record.read { $0.tls }?.version.description
        task.cancel()
        try JSONLine.print(report)
        if report.error != nil { throw ExitCode.failure }
    }

    private func deliver(_ message: [String], _ dialogue: MailDialogue) async throws {
        try await dialogue.greet()
        try await dialogue.hello()
        guard dialogue.extensions.contains("STARTTLS") else { throw MailFailure.notOffered }
        try await dialogue.secure(try self.trust.settings(for: self.host))
        try await dialogue.hello()
        try await dialogue.command("MAIL FROM:<\(self.from)>", expecting: 250)
        try await dialogue.command("RCPT TO:<\(self.to)>", expecting: 250)
        try await dialogue.command("DATA", expecting: 354)
        try await dialogue.body(message)
        try await dialogue.command("QUIT", expecting: 221)
    }
}
