import ArgumentParser
import CommandLineText
import ControlAPI
import ControlClient
import Foundation
import GatewayConfiguration
import WireText

/// `sluice rooms`: lists and moderates the rooms of a running gateway.
struct RoomsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rooms",
        abstract: "List or moderate the rooms of a running gateway.",
        discussion: """
            Prints a table of rooms: members, users in presence, publications kept with their size, offset of the newest \
            publication, and policy. With NAME, prints one room, or changes it.

            --kick removes members from the room, --disconnect ends their connections; both concern all members, or those of \
            --user. --ban removes a user and keeps it out, --mute forbids it to publish, each for the time of --for. Without \
            NAME, 'sluice users' does the same in every room. In a cluster, all of this concerns all nodes.

            EXAMPLES
              sluice rooms --pattern 'chat:*' --min-members 1
              sluice rooms chat:lobby --members
              sluice rooms chat:lobby --history --last 10
              sluice rooms chat:lobby --kick --user 42
              sluice rooms chat:lobby --ban 42 --for 1h

            \(ControlHelp.exitCodes)
            """)

    @Argument(help: .value("NAME", "Name of the room."))
    var name: String?

    @OptionGroup(title: "Rooms to list")
    private var list: RoomListOptions

    @OptionGroup(title: "What to show of one room")
    private var view: RoomViewOptions

    @OptionGroup(title: "Moderation of one room")
    private var moderation: RoomModerationOptions

    @OptionGroup(title: "Gateway and output")
    var control: ControlOptions

    func run() async throws {
        try await self.control.run(reading: self.action) { context, action in
            try await action.perform(context)
        }
    }

    private func action(_ reader: inout OptionReader) throws -> RoomAction? {
        reader.requireText("NAME", self.name)
        guard let name else {
            if let option = self.view.given ?? self.moderation.given {
                reader.reject("NAME", "required with \(option)")
            }
            return self.list.action(&reader)
        }
        if let option = self.list.given { reader.reject(option, "cannot be combined with NAME") }
        let actions = [self.view.action(name, &reader), try self.moderation.action(name, &reader)].compactMap(\.self)
        if actions.count > 1 { reader.reject("NAME", "allows one of the options that show or change a room") }
        return actions.first ?? .show(name)
    }
}

/// Operation on rooms.
private enum RoomAction {
    case list([ControlRequest.Parameter])
    case show(String)
    case members(String)
    case history(String, [ControlRequest.Parameter], limit: Int?)
    case restrictions(String)
    /// Prints how many clients it concerned.
    case count(ControlRequest, String)
    case restrict(ControlRequest)
    /// Prints `done`.
    case change(ControlRequest, done: String)

    func perform(_ context: CommandContext) async throws {
        switch self {
        case .list(let parameters):
            try await context.printPages(ControlRequest(.get, RoomPath.all, parameters), as: RoomPage.self) {
                context.note(unreachable: $0.unreachable)
                return ($0.items.isEmpty ? nil : RoomTable($0.items).table, $0.next)
            }
        case .show(let name):
            try await context.perform(ControlRequest(.get, RoomPath.room(name)), as: Room.self) {
                context.note(unreachable: $0.unreachable)
                return RoomDetails.lines($0)
            }
        case .members(let name):
            let request = ControlRequest(.get, RoomPath.room(name) + "/members", [.init("limit", "1000")])
            try await context.printPages(request, as: RoomMemberPage.self) {
                context.note(unreachable: $0.unreachable)
                return ($0.items.isEmpty ? nil : RoomMemberTable($0.items).table, $0.next)
            }
        case .history(let name, let parameters, let limit):
            try await Self.history(ControlRequest(.get, RoomPath.room(name) + "/history", parameters), limit, context)
        case .restrictions(let name):
            let request = ControlRequest(.get, RoomPath.room(name) + "/restrictions")
            try await context.perform(request, as: RestrictionList.self) { RoomDetails.lines($0) }
        case .count(let request, let verb):
            try await context.perform(request, as: ClientCount.self) {
                context.note(unreachable: $0.unreachable)
                return ["\(verb) \($0.clients) client\($0.clients == 1 ? "" : "s")"]
            }
        case .restrict(let request):
            try await context.perform(request, as: RestrictionList.self) { RoomDetails.lines($0) }
        case .change(let request, let done):
            _ = try await context.session.send(request)
            if !context.printsJSON { try await context.print(done) }
        }
    }

    /// - Parameter limit: publications printed; `nil` is all.
    private static func history(
        _ first: ControlRequest, _ limit: Int?, _ context: CommandContext
    ) async throws {
        var request: ControlRequest? = first
        var rest = limit ?? .max
        while let current = request, rest > 0 {
            let answer = try await context.session.send(current)
            let page: (records: [PublicationRecord], next: String?)
            do throws(JSONSyntaxError) {
                page = try PublicationRecord.page(Array(answer.body))
            } catch {
                throw ControlFailure(.invalidResponse, "unexpected response: \(error)")
            }
            rest -= page.records.count
            request = page.next.map { ControlRequest(.get, ConnectionListing.Pages.bounded($0, count: rest)) }
            if context.printsJSON {
                try await context.print(json: answer.body)
            } else {
                try await context.print(page.records.map(\.line))
            }
        }
    }
}

/// Options that select rooms.
private struct RoomListOptions: ParsableArguments {
    @Option(help: .value("pattern", "Only rooms whose names match; `*` matches any text."))
    var pattern: String?

    @Option(help: .value("number", "Only rooms with at least this many members."))
    var minMembers: String?

    var given: String? { self.pattern != nil ? "--pattern" : self.minMembers != nil ? "--min-members" : nil }

    fileprivate func action(_ reader: inout OptionReader) -> RoomAction {
        reader.requireText("--pattern", self.pattern)
        let least = reader.value("--min-members", self.minMembers, .integer(0...100_000_000))
        let parameters = [
            self.pattern.map { ControlRequest.Parameter("pattern", $0) },
            least.map { ControlRequest.Parameter("minMembers", "\($0)") }, .init("limit", "1000"),
        ]
        return .list(parameters.compactMap(\.self))
    }
}

/// Options that show parts of a room.
private struct RoomViewOptions: ParsableArguments {
    @Flag(help: "List the members.")
    var members = false

    @Flag(help: "Print the history, the oldest publication first.")
    var history = false

    @Flag(help: "List bans and mutes.")
    var restrictions = false

    @Option(help: .value("number", "With --history: print this many of the newest publications, the newest first."))
    var last: String?

    @Option(help: .value("offset", "With --history: begin after this offset."))
    var since: String?

    var given: String? {
        if self.members { return "--members" }
        if self.history { return "--history" }
        if self.restrictions { return "--restrictions" }
        return self.last != nil ? "--last" : self.since != nil ? "--since" : nil
    }

    fileprivate func action(_ name: String, _ reader: inout OptionReader) -> RoomAction? {
        if [self.members, self.history, self.restrictions].filter(\.self).count > 1 {
            reader.reject("--members", "--members, --history and --restrictions cannot be combined")
        }
        if !self.history, self.last != nil || self.since != nil {
            reader.reject(self.last != nil ? "--last" : "--since", "requires --history")
        }
        if self.members { return .members(name) }
        if self.restrictions { return .restrictions(name) }
        guard self.history else { return nil }
        if self.last != nil, self.since != nil { reader.reject("--last", "cannot be combined with --since") }
        let last = reader.value("--last", self.last, .integer(1...1_000_000))
        let since = reader.value("--since", self.since, .integer(0...Int.max))
        let parameters = [
            ControlRequest.Parameter("limit", "\(min(last ?? 1000, 1000))"),
            last.map { _ in ControlRequest.Parameter("reverse", "true") },
            since.map { ControlRequest.Parameter("since", "\($0)") },
        ]
        return .history(name, parameters.compactMap(\.self), limit: last)
    }
}

/// Options that change a room.
private struct RoomModerationOptions: ParsableArguments {
    @Flag(help: "Remove members from the room.")
    var kick = false

    @Flag(help: "End the connections of members.")
    var disconnect = false

    @Option(help: .value("user", "With --kick or --disconnect: only this user. (default: all members)"))
    var user: String?

    @Option(help: .value("code", "With --disconnect: close code, 3000 to 4999. (default: 3503)"))
    var code: String?

    @Option(help: .value("text", "With --disconnect: close reason, at most 123 bytes."))
    var reason: String?

    @Option(help: .value("user", "Ban this user for a time."))
    var ban: String?

    @Option(help: .value("user", "Lift the ban of this user."))
    var unban: String?

    @Option(help: .value("user", "Forbid this user to publish for a time."))
    var mute: String?

    @Option(help: .value("user", "Permit this user to publish again."))
    var unmute: String?

    @Option(name: .customLong("for"), help: .value("duration", "Time of --ban or --mute, 1s to 365d. (default: 1h)"))
    var time: String?

    @Option(help: .value("offset", "Delete one publication of the history."))
    var delete: String?

    @Flag(help: "Delete the whole history.")
    var deleteHistory = false

    private var actions: [String] {
        let flags = [
            ("--kick", self.kick), ("--disconnect", self.disconnect), ("--delete-history", self.deleteHistory),
        ]
        let options = [
            ("--ban", self.ban), ("--unban", self.unban), ("--mute", self.mute), ("--unmute", self.unmute),
            ("--delete", self.delete),
        ]
        return flags.filter(\.1).map(\.0) + options.filter { $0.1 != nil }.map(\.0)
    }

    var given: String? {
        self.actions.first
            ?? (self.user != nil ? "--user" : self.code != nil ? "--code" : self.reason != nil ? "--reason" : nil)
            ?? (self.time != nil ? "--for" : nil)
    }

    fileprivate func action(_ name: String, _ reader: inout OptionReader) throws -> RoomAction? {
        self.check(&reader)
        let users = [
            ("--user", self.user), ("--ban", self.ban), ("--unban", self.unban), ("--mute", self.mute),
            ("--unmute", self.unmute),
        ]
        for (option, user) in users { reader.requireText(option, user) }
        let milliseconds = reader.milliseconds("--for", self.time, .seconds(1) ... .seconds(31_536_000))
        let code = reader.value("--code", self.code, .integer(3000...4999))
        let offset = reader.value("--delete", self.delete, .integer(1...Int.max))
        guard reader.problems.isEmpty else { return nil }
        if self.kick { return try self.kickRequest(name) }
        if self.disconnect {
            let body = RoomDisconnect { ($0.user, $0.code, $0.reason) = (self.user, code, self.reason) }
            return .count(try ControlRequest(.post, RoomPath.action("disconnect", name), json: body), "disconnected")
        }
        for (verb, user) in [("ban", self.ban), ("mute", self.mute)] {
            guard let user else { continue }
            let body = RoomRestriction { ($0.user, $0.durationMs) = (user, milliseconds) }
            return .restrict(try ControlRequest(.post, RoomPath.action(verb, name), json: body))
        }
        for (verb, user) in [("unban", self.unban), ("unmute", self.unmute)] {
            guard let user else { continue }
            let request = try ControlRequest(
                .post, RoomPath.action(verb, name), json: RoomRestrictionEnd { $0.user = user })
            return .change(request, done: "lifted")
        }
        if let offset {
            return .change(ControlRequest(.delete, "\(RoomPath.room(name))/history/\(offset)"), done: "deleted")
        }
        guard self.deleteHistory else { return nil }
        return .change(ControlRequest(.delete, "\(RoomPath.room(name))/history"), done: "deleted")
    }

    private func kickRequest(_ name: String) throws -> RoomAction {
        let body = RoomKick { $0.user = self.user }
        return .count(try ControlRequest(.post, RoomPath.action("kick", name), json: body), "removed")
    }

    private func check(_ reader: inout OptionReader) {
        if self.actions.count > 1 {
            reader.reject(self.actions[0], "cannot be combined with \(self.actions[1])")
        }
        if self.user != nil, !self.kick, !self.disconnect { reader.reject("--user", "requires --kick or --disconnect") }
        if self.code != nil || self.reason != nil, !self.disconnect {
            reader.reject(self.code != nil ? "--code" : "--reason", "requires --disconnect")
        }
        if self.time != nil, self.ban == nil, self.mute == nil { reader.reject("--for", "requires --ban or --mute") }
    }
}
