import ArgumentParser
import CommandLineText
import ControlAPI
import ControlClient
import Foundation
import GatewayConfiguration
import GatewayCore

/// `sluice events`: what happens in a gateway, as it happens.
struct EventsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "events",
        abstract: "Tell what happens in a running gateway, as it happens.",
        discussion: """
            A line for each event, until Ctrl-C. When the connection to the gateway is lost it is opened again, and goes on behind \
            the last event; what was missed is told as a gap. --after tells what happened since that event first, as far as it is \
            kept.

            Types: \(Self.types.joined(separator: ", ")).

            EXAMPLES
              sluice events
              sluice events --type closed --route backend --json | jq -r .reason
              sluice events --after 0 --count 10

            \(ControlHelp.exitCodes)
            """)

    private static let types = [
        "opened", "closed", "upgraded", "limitHit", "upstreamDown", "upstreamUp", "reloaded", "reloadFailed",
        "drainStarted", "drainProgressed", "drainEnded", "transferStarted", "transferEnded", "transferFailed", "gap",
    ]

    @Option(
        parsing: .singleValue, help: ArgumentHelp("Only this type. Repeat for several.", valueName: "type"),
        completion: .list(Self.types))
    var type: [String] = []

    @Option(parsing: .singleValue, help: ArgumentHelp("Only of this connection.", valueName: "ID"))
    var connection: [String] = []

    @Option(parsing: .singleValue, help: ArgumentHelp("Only of this listener.", valueName: "name"))
    var listener: [String] = []

    @Option(parsing: .singleValue, help: ArgumentHelp("Only of this route.", valueName: "name"))
    var route: [String] = []

    @Option(parsing: .singleValue, help: ArgumentHelp("Only of this upstream.", valueName: "name"))
    var upstream: [String] = []

    @Option(help: ArgumentHelp("Begin behind the event of this number; 0: with the oldest.", valueName: "number"))
    var after: String?

    @Option(name: .shortAndLong, help: ArgumentHelp("End after so many.", valueName: "number"))
    var count: String?

    @OptionGroup(title: "Gateway and output")
    var control: ControlOptions

    private struct Plan {
        var request: ControlRequest
        var count: Int
    }

    func run() async throws {
        try await self.control.run(reading: self.plan) { desk, plan in
            var follower = EventFollower(desk.session, plan.request)
            var rest = plan.count
            while rest > 0 {
                switch try await follower.next() {
                case .event(let event):
                    try await self.show(event, desk)
                    rest -= 1
                case .lost(let failure, let pause):
                    desk.note("\(failure.text); trying again")
                    try await Task.sleep(for: pause)
                }
            }
        }
    }

    private func plan(_ reader: inout OptionReader) -> Plan? {
        let after = reader.value("--after", self.after, .integer(0...Int.max))
        let count = reader.value("--count", self.count, .integer(1...Int.max))
        let lists = [
            ("type", self.type), ("connection", self.connection), ("listener", self.listener), ("route", self.route),
            ("upstream", self.upstream), ("after", after.map { ["\($0)"] } ?? []),
        ]
        let parameters = lists.flatMap { name, values in values.map { ControlRequest.Parameter(name, $0) } }
        var request = ControlRequest(.get, "/v1/events", parameters)
        // Three heartbeats.
        request.patience = .seconds(45)
        return Plan(request: request, count: count ?? .max)
    }

    private func show(_ event: ServerSentEvent, _ desk: CommandContext) async throws {
        if desk.printsJSON { return try await desk.print(json: Data(event.data)) }
        guard let known = try? JSONDecoder().decode(Event.self, from: Data(event.data)) else {
            throw ControlFailure(.nonsense, "this is no event: \(String(decoding: event.data, as: UTF8.self))")
        }
        try await desk.print(EventLine.line(known, colors: desk.colors))
    }
}
