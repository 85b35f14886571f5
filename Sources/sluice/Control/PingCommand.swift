import ArgumentParser
import CommandLineText
import ControlAPI
import ControlClient
import GatewayCore

/// `sluice ping`: the round trip of a WebSocket.
struct PingCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ping",
        abstract: "Send a Ping on a WebSocket, and tell how long its Pong took.",
        discussion: """
            The Ping goes between two messages of what else flows on the connection.

            EXAMPLES
              sluice ping 17
              sluice ping 17 --count 10 --interval 500ms

            \(ControlHelp.exitCodes)
            """)

    @Argument(help: ArgumentHelp("The connection.", valueName: "ID"))
    var id: String

    @Option(name: .shortAndLong, help: ArgumentHelp("How many, 1 to 1000000. (default: 1)", valueName: "number"))
    var count: String?

    @Option(help: ArgumentHelp("Between two of them, 0s to 1h. (default: 1s)", valueName: "duration"))
    var interval: String?

    @OptionGroup(title: "Gateway and output")
    var control: ControlOptions

    private struct Plan {
        var count: Int
        var interval: Duration
    }

    func run() async throws {
        try await self.control.run(reading: self.plan) { desk, plan in
            let request = ControlRequest(.post, ConnectionPath.verb("ping", self.id))
            for turn in 0..<plan.count {
                if turn > 0 { try await Task.sleep(for: plan.interval) }
                let answer = try await desk.session.send(request)
                try await desk.show(answer, as: PingAnswer.self) { answer in
                    let time = FigureText.span(milliseconds: answer.rttMs)
                    return ["\(TerminalText.line(self.id)): pong after \(time)"]
                }
            }
        }
    }

    private func plan(_ reader: inout OptionReader) -> Plan? {
        let count = reader.value("--count", self.count, .integer(1...1_000_000))
        let interval = reader.value("--interval", self.interval, .duration(.zero ... .seconds(3600)))
        return Plan(count: count ?? 1, interval: interval ?? .seconds(1))
    }
}
