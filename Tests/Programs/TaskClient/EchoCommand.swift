import ArgumentParser
import SessionTasks
import StreamTransport
import WebSocketProtocol

struct EchoCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "echo", abstract: "Send every message back as it came, until the server ends the connection.")

    @Argument(help: "ws://HOST[:PORT][/PATH] or wss://…") var url: String
    @Option(help: ArgumentHelp("Longest message accepted.", valueName: "bytes")) var maxSize = 1 << 20
    @Option var subprotocol: [String] = []
    @OptionGroup var deflate: DeflateOptions
    @OptionGroup var trust: TrustOptions

    func run() async throws {
        let place = try ServerAddress(self.url)
        let loops = try LoopGroup(count: 1)
        var target = OpeningTarget(.host(place.host, port: place.port))
        if place.isSecure { target.secure = try self.trust.settings(for: place.host) }
        let policy = self.deflate.policy
        let opening = ClientOpening(
            target: target,
            handshake: try ClientHandshake(
                host: place.host, port: Int(place.port), isSecure: place.isSecure, target: place.path,
                subprotocols: self.subprotocol, offers: policy?.offers ?? []),
            deflate: policy)
        var options = WebSocketOptions()
        options.maximumMessageSize = self.maxSize
        let task = await WebSocketTask.make(opening, on: loops.loops[0], options: options)
        task.resume()
        let echoed = await Self.echo(on: task)
        let report = EchoReport(task, end: try await task.end(), echoed: echoed)
        try JSONLine.print(report)
        if !report.clean { throw ExitCode.failure }
    }

    /// - Returns: how many messages went back.
    private static func echo(on task: WebSocketTask) async -> Int {
        var echoed = 0
        do throws(TaskFailure) {
            while true {
                try await task.send(try await task.receive())
                echoed += 1
            }
        } catch {
            return echoed
        }
    }
}
