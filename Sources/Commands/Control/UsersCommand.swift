import ArgumentParser
import CommandLineText
import ControlAPI
import ControlClient
import GatewayConfiguration

/// `sluice users`: lists the users of the rooms, and controls one of them.
struct UsersCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "users",
        abstract: "List or control the users of the rooms of a running gateway.",
        discussion: """
            Prints a table of the users who are connected to rooms: connections, nodes of the cluster, and rooms. Anonymous users \
            and clients without a protocol are not listed.

            With ID, prints the user's connections with their rooms, and its bans and mutes. --ban removes the user's clients from all \
            rooms and keeps the user out, --mute forbids it to publish, each in every room and for the time of --for; 'sluice \
            rooms' does the same in one room. In a cluster, all of this concerns all nodes.

            EXAMPLES
              sluice users --pattern 'guest-*' --room chat:lobby
              sluice users 42
              sluice users 42 --send '{"text": "the game begins"}'
              sluice users 42 --disconnect --code 4501 --reason 'account closed'
              sluice users 42 --mute --for 10m

            \(ControlHelp.exitCodes)
            """)

    @Argument(help: .value("ID", "Name of the user."))
    var id: String?

    @OptionGroup(title: "Users to list")
    private var list: UserListOptions

    @OptionGroup(title: "Cluster")
    private var nodes: NodeOptions

    @OptionGroup(title: "Control of the user")
    private var options: UserOptions

    @OptionGroup(title: "Gateway and output")
    var control: ControlOptions

    func run() async throws {
        try await self.control.run(reading: self.action) { context, action in
            try await action.perform(context)
        }
    }

    private func action(_ reader: inout OptionReader) throws -> UserAction? {
        let listing = self.list.given ?? (self.nodes.node.isEmpty ? nil : "--node")
        let texts = [("ID", self.id), ("--pattern", self.list.pattern), ("--room", self.list.room)]
        for (option, text) in texts { reader.requireText(option, text) }
        guard let id else {
            if let option = self.options.given { reader.reject("ID", "required with \(option)") }
            return .list(self.list.parameters + self.nodes.parameters)
        }
        if let listing { reader.reject(listing, "cannot be combined with ID") }
        return try self.options.action(id, &reader)
    }
}

/// Operation on users.
private enum UserAction {
    case list([ControlRequest.Parameter])
    case show(ControlRequest)
    /// Prints how many clients it concerned.
    case count(ControlRequest, String)
    case restrict(ControlRequest)
    case lift(ControlRequest)

    func perform(_ context: CommandContext) async throws {
        switch self {
        case .list(let parameters):
            try await context.printPages(ControlRequest(.get, RoomPath.users, parameters), as: UserPage.self) {
                context.note(unreachable: $0.unreachable)
                return ($0.items.isEmpty ? nil : UserTable($0.items).table, $0.next)
            }
        case .show(let request):
            try await context.perform(request, as: User.self) {
                context.note(unreachable: $0.unreachable)
                return RoomDetails.lines($0)
            }
        case .count(let request, let verb):
            try await context.perform(request, as: ClientCount.self) {
                context.note(unreachable: $0.unreachable)
                return ["\(verb) \($0.clients) client\($0.clients == 1 ? "" : "s")"]
            }
        case .restrict(let request):
            try await context.perform(request, as: RestrictionList.self) { RoomDetails.lines($0) }
        case .lift(let request):
            _ = try await context.session.send(request)
            if !context.printsJSON { try await context.print("lifted") }
        }
    }
}

/// Options that select users.
private struct UserListOptions: ParsableArguments {
    @Option(help: .value("pattern", "Only users whose names match; `*` matches any text."))
    var pattern: String?

    @Option(help: .value("name", "Only connections that are in this room."))
    var room: String?

    var given: String? { self.pattern != nil ? "--pattern" : self.room != nil ? "--room" : nil }

    var parameters: [ControlRequest.Parameter] {
        [("pattern", self.pattern), ("room", self.room), ("limit", "1000")].compactMap { name, value in
            value.map { ControlRequest.Parameter(name, $0) }
        }
    }
}

private struct UserOptions: ParsableArguments {
    @Flag(help: "End the user's connections.")
    var disconnect = false

    @Option(help: .value("code", "With --disconnect: close code, 3000 to 4999. (default: 3503)"))
    var code: String?

    @Option(help: .value("text", "With --disconnect: close reason, at most 123 bytes."))
    var reason: String?

    @Option(help: .value("text", "Send a message to the user's clients: JSON, or text that is sent as a JSON string."))
    var send: String?

    @Option(help: .value("client", "With --disconnect or --send: only this client."))
    var client: String?

    @Flag(help: "Ban the user from every room for a time.")
    var ban = false

    @Flag(help: "Lift the ban from every room.")
    var unban = false

    @Flag(help: "Forbid the user to publish for a time.")
    var mute = false

    @Flag(help: "Lift the mute in every room.")
    var unmute = false

    @Option(name: .customLong("for"), help: .value("duration", "Time of --ban or --mute, 1s to 365d. (default: 1h)"))
    var time: String?

    private var actions: [String] {
        [
            ("--disconnect", self.disconnect), ("--send", self.send != nil), ("--ban", self.ban),
            ("--unban", self.unban), ("--mute", self.mute), ("--unmute", self.unmute),
        ].filter(\.1).map(\.0)
    }

    var given: String? {
        self.actions.first
            ?? (self.code != nil ? "--code" : self.reason != nil ? "--reason" : self.client != nil ? "--client" : nil)
            ?? (self.time != nil ? "--for" : nil)
    }

    fileprivate func action(_ id: String, _ reader: inout OptionReader) throws -> UserAction? {
        self.check(&reader)
        let milliseconds = reader.milliseconds("--for", self.time, .seconds(1) ... .seconds(31_536_000))
        let code = reader.value("--code", self.code, .integer(3000...4999))
        guard reader.problems.isEmpty else { return nil }
        let path = RoomPath.user(id)
        if self.disconnect {
            let body = UserDisconnect { ($0.client, $0.code, $0.reason) = (self.client, code, self.reason) }
            return .count(try ControlRequest(.post, "\(path):disconnect", json: body), "disconnected")
        }
        if let text = self.send {
            let body = UserSend { $0.client = self.client }
            return .count(try ControlRequest("\(path):send", RoomData(text: text), beside: body), "sent to")
        }
        for (verb, isWanted) in [("ban", self.ban), ("mute", self.mute)] where isWanted {
            let body = UserRestriction { $0.durationMs = milliseconds }
            return .restrict(try ControlRequest(.post, "\(path):\(verb)", json: body))
        }
        for (verb, isWanted) in [("unban", self.unban), ("unmute", self.unmute)] where isWanted {
            return .lift(ControlRequest(.post, "\(path):\(verb)"))
        }
        return .show(ControlRequest(.get, path))
    }

    private func check(_ reader: inout OptionReader) {
        if self.actions.count > 1 { reader.reject(self.actions[0], "cannot be combined with \(self.actions[1])") }
        if self.code != nil || self.reason != nil, !self.disconnect {
            reader.reject(self.code != nil ? "--code" : "--reason", "requires --disconnect")
        }
        if self.client != nil, !self.disconnect, self.send == nil {
            reader.reject("--client", "requires --disconnect or --send")
        }
        if self.time != nil, !self.ban, !self.mute { reader.reject("--for", "requires --ban or --mute") }
    }
}
