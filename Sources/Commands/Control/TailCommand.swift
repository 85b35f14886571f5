import ArgumentParser
import CommandLineText
import ControlAPI
import ControlClient
import Foundation
import GatewayConfiguration
import WireText

/// `sluice tail`: follows a room.
struct TailCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "tail",
        abstract: "Follow the messages of a room of a running gateway.",
        discussion: """
            Prints one line per message until Ctrl-C: time, offset, publisher and data. After a lost connection it continues \
            after the last message that it printed, as far as the room's history reaches; what is missing is reported on \
            standard error. Other members do not see it.

            EXAMPLES
              sluice tail chat:lobby --last 10
              sluice tail news --count 1
              sluice tail news --json | jq .publication.data

            \(ControlHelp.exitCodes)
            """)

    @Argument(help: .value("ROOM", "Name of the room."))
    var room: String

    @Option(help: .value("number", "Begin with this many messages of the history, at most 1000. (default: 0)"))
    var last: String?

    @Option(help: .value("position", "Begin after EPOCH.OFFSET, the id of an event."))
    var after: String?

    @Option(name: .shortAndLong, help: .value("number", "Exit after this many messages."))
    var count: String?

    @OptionGroup(title: "Gateway and output")
    var control: ControlOptions

    func run() async throws {
        try await self.control.run(reading: self.plan) { context, plan in
            try await context.follow(plan.request, count: plan.count) { event, hasReconnected in
                try await self.show(event, context, hasReconnected: hasReconnected)
            }
        }
    }

    private func plan(_ reader: inout OptionReader) -> (request: ControlRequest, count: Int)? {
        reader.requireText("ROOM", self.room)
        if self.last != nil, self.after != nil { reader.reject("--last", "cannot be combined with --after") }
        let last = reader.value("--last", self.last, .integer(0...1000))
        let count = reader.value("--count", self.count, .integer(1...Int.max))
        let parameters = [
            last.map { ControlRequest.Parameter("last", "\($0)") },
            self.after.map { ControlRequest.Parameter("after", $0) },
        ]
        var request = ControlRequest(.get, RoomPath.room(self.room) + "/events", parameters.compactMap(\.self))
        // Three heartbeats.
        request.idleTimeout = .seconds(45)
        return (request, count ?? .max)
    }

    /// - Returns: whether it is a message.
    private func show(
        _ event: ServerSentEvent, _ context: CommandContext, hasReconnected: Bool
    ) async throws -> Bool {
        let isMessage = event.type == "publication"
        if context.printsJSON {
            try await context.print(json: Data(event.data))
            return isMessage
        }
        switch event.type {
        case "publication": try await context.print(try Self.publication(event).line)
        case "gap": context.note("messages are missing: the room's history does not continue from that position")
        case "following" where hasReconnected && event.lastID.isEmpty:
            context.note("messages may be missing: the room keeps no history")
        case "ended": context.note("too slow for this room; continuing with what its history has")
        default: break
        }
        return isMessage
    }

    private static func publication(_ event: ServerSentEvent) throws -> PublicationRecord {
        var reader = JSONReader(event.data, maximumDepth: PublicationRecord.maximumDepth)
        var record: PublicationRecord?
        do throws(JSONSyntaxError) {
            try reader.readObject { (name, value) throws(JSONSyntaxError) in
                if name == "publication" { record = try PublicationRecord(&value) } else { try value.skipValue() }
            }
        } catch {
            throw ControlFailure(.invalidResponse, "the gateway sent an invalid event: \(error)")
        }
        guard let record else { throw ControlFailure(.invalidResponse, "the gateway sent an event without a message") }
        return record
    }
}
