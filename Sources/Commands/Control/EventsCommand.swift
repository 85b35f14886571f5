import ArgumentParser
import CommandLineText
import ControlAPI
import ControlClient
import Foundation
import GatewayConfiguration
import GatewayCore

/// `sluice events`: follows the events of a running gateway.
struct EventsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "events",
        abstract: "Follow the events of a running gateway.",
        discussion: """
            Prints one line per event until Ctrl-C. If the connection to the gateway is lost, sluice reconnects and continues after \
            the last event; missed events are reported as a gap. --after does the same for an earlier run: it takes the position of \
            an event, which --json prints. After a position of a gateway that has been restarted since, or a number alone, come a \
            gap and all events that are kept. In a cluster, follows all nodes, and a position of one node is valid on every other.

            Types: \(Event.types.joined(separator: ", ")).

            EXAMPLES
              sluice events
              sluice events --type closed --route backend --json | jq -r .reason
              sluice events --after 0 --count 10
              sluice events --json --after "$(tail -n 1 saved | jq -r .position)"
              sluice events --node b --type closed

            \(ControlHelp.exitCodes)
            """)

    @Option(
        parsing: .singleValue,
        help: .value("type", "Only events of this type. Repeatable."), completion: .list(Event.types))
    var type: [String] = []

    @Option(parsing: .singleValue, help: .value("ID", "Only events of this connection."))
    var connection: [String] = []

    @Option(parsing: .singleValue, help: .value("name", "Only events of this listener."))
    var listener: [String] = []

    @Option(parsing: .singleValue, help: .value("name", "Only events of this route."))
    var route: [String] = []

    @Option(parsing: .singleValue, help: .value("name", "Only events of this upstream."))
    var upstream: [String] = []

    @OptionGroup(title: "Cluster")
    var nodes: NodeOptions

    @Option(help: .value("position", "Start after the event with this position; 0 starts with the oldest."))
    var after: String?

    @Option(name: .shortAndLong, help: .value("number", "Exit after this many events."))
    var count: String?

    @OptionGroup(title: "Gateway and output")
    var control: ControlOptions

    func run() async throws {
        try await self.control.run(reading: self.plan) { context, plan in
            try await context.follow(plan.request, count: plan.count) { event, _ in
                try await self.show(event, context)
                return true
            }
        }
    }

    private func plan(_ reader: inout OptionReader) -> (request: ControlRequest, count: Int)? {
        let after = reader.value("--after", self.after, .eventPosition)
        let count = reader.value("--count", self.count, .integer(1...Int.max))
        let lists = [
            ("type", self.type), ("connection", self.connection), ("listener", self.listener), ("route", self.route),
            ("upstream", self.upstream), ("after", after.map { [$0] } ?? []),
        ]
        for (name, values) in lists { reader.requireText("--\(name)", values) }
        let parameters = lists.flatMap { name, values in values.map { ControlRequest.Parameter(name, $0) } }
        var request = ControlRequest(.get, "/v1/events", parameters + self.nodes.parameters)
        // Three heartbeats.
        request.idleTimeout = .seconds(45)
        return (request, count ?? .max)
    }

    private func show(_ event: ServerSentEvent, _ context: CommandContext) async throws {
        if context.printsJSON { return try await context.print(json: Data(event.data)) }
        guard let known = try? JSONDecoder().decode(Event.self, from: Data(event.data)) else {
            throw ControlFailure(
                .invalidResponse, "the gateway sent an invalid event: \(String(decoding: event.data, as: UTF8.self))")
        }
        try await context.print(EventLine.line(known, colors: context.colors))
    }
}

extension ValueSyntax<String> {
    /// The position of an event (`5b1c8fa0.17`), in a cluster on all nodes (`17@a/5b1c8fa0,5@b/90e1c20d`).
    fileprivate static var eventPosition: ValueSyntax {
        ValueSyntax { text throws(ValueSyntaxError) in
            let parts = text.split(separator: ",", omittingEmptySubsequences: false)
            let isPosition = parts.allSatisfy { part in
                let words = part.split(separator: "@", maxSplits: 1, omittingEmptySubsequences: false)
                if words.count > 1 { return UInt64(words[0]) != nil && !words[1].isEmpty }
                let number = part.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false).last
                return parts.count == 1 && number.flatMap { UInt64($0) } != nil
            }
            guard isPosition else {
                throw ValueSyntaxError(
                    expected: "0 or the position of an event", remedy: "'sluice events --json' prints positions")
            }
            return text
        }
    }
}
