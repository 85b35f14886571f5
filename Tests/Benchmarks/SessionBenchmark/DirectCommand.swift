import ArgumentParser
import SessionTasks
import StreamTransport
import WebSocketProtocol

struct DirectCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "direct", abstract: "The same messages through the task beneath, without a session.")

    @Argument var host: String
    @Argument var port: UInt16
    @Argument var path: String
    @Argument var count: Int
    @Option var size = 512

    func run() async throws {
        let loops = try LoopGroup(count: 1)
        let opening = ClientOpening(
            target: OpeningTarget(.host(self.host, port: self.port)),
            handshake: try ClientHandshake(
                host: self.host, port: Int(self.port), isSecure: false, target: self.path, subprotocols: [],
                offers: []),
            deflate: nil)
        let task = await WebSocketTask.make(opening, on: loops.loops[0], options: WebSocketOptions())
        task.resume()
        let message = WebSocketTask.Message.data([UInt8](repeating: 0x61, count: self.size))
        try await self.echo(message, self.count / 10, task)
        let measured = try await Measurement.of {
            try await self.echo(message, self.count, task)
            return self.count
        }
        try measured.tell()
        task.cancel()
    }

    private func echo(_ message: WebSocketTask.Message, _ count: Int, _ task: WebSocketTask) async throws {
        for _ in 0..<count {
            try await task.send(message)
            _ = try await task.receive()
        }
    }
}
