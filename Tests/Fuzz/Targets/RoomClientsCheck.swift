import ByteKernels
import Rooms
import WireText

/// The first byte chooses the encoding and whether rooms answer at once or later; the rest is one message of a client.
///
/// Each command gets one reply, unless the connection ends; the client is in a room once, and in none at the end; every
/// reply is one line of JSON, and one message of Protobuf of the length before it.
enum RoomClientsCheck {
    static func run(_ bytes: [UInt8]) throws(InvariantViolation) {
        guard let choice = bytes.first else { return }
        let message = Array(bytes[1...])
        let encoding: ProtocolEncoding = choice & 1 == 0 ? .json : .protobuf
        // The text of a WebSocket is valid.
        guard encoding == .protobuf || message.isValidUTF8 else { return }
        let (commands, isWhole) = self.commands(message, encoding)
        var owner = RoomClientOwner(answersLater: choice & 2 != 0)
        for command in commands { try owner.receive(command) }
        if !isWhole { owner.client.receivedMalformedBytes() }
        try owner.end()
    }

    private static func commands(
        _ message: [UInt8], _ encoding: ProtocolEncoding
    ) -> (commands: [Command], isWhole: Bool) {
        var reader = CommandReader(message, encoding: encoding)
        var commands: [Command] = []
        do {
            while let command = try reader.next() { commands.append(command) }
            return (commands, true)
        } catch {
            return (commands, false)
        }
    }
}

/// Does what a client's machine asks for, with rooms that admit everyone.
private struct RoomClientOwner {
    private struct Authority: RoomAuthority {
        func connection(token: String, now: UInt64) throws(TokenRefusal) -> ConnectionGrant {
            switch token {
            case "": return ConnectionGrant()
            case "expired": throw .expired
            case "short":
                var grant = ConnectionGrant(user: "42")
                grant.expiry = now + 1
                grant.subscriptions = [SubscriptionGrant(channel: "a")]
                return grant
            default: throw .invalid
            }
        }

        func subscription(
            token: String, user: String, client: String, channel: String, now: UInt64
        ) throws(TokenRefusal) -> SubscriptionGrant {
            guard token == channel else { throw .foreign }
            var grant = SubscriptionGrant(channel: channel)
            grant.expiry = now + 1
            return grant
        }

        func policy(of channel: String) -> RoomPolicy? {
            guard channel != "none" else { return nil }
            var policy = RoomPolicy(name: "p", pattern: RoomPattern("*"))
            (policy.hasPresence, policy.historySize) = (true, 10)
            policy.recovery = channel == "cache" ? .cache : .stream
            (policy.deltas, policy.allowsFilters) = (.fossil, true)
            return policy
        }

        func isMuted(user: String, in channel: String) -> Bool { channel == "muted" }
        func isBanned(user: String, from channel: String) -> Bool { channel == "banned" }
    }

    private static let maximumSubscriptions = 4
    var client: RoomClient
    private let answersLater: Bool
    private var now = RoomClient.Instant(elapsed: .zero, unix: 1000)
    /// Commands that wait for their reply, by number.
    private var unanswered: [UInt32: Int] = [:]
    private var rooms: Set<String> = []
    private var operations: [RoomClient.Action] = []
    private var lastPublication = Publication(.json(Array("1".utf8)))
    private var isClosed = false

    init(answersLater: Bool) {
        self.answersLater = answersLater
        var settings = RoomClientSettings()
        settings.maximumSubscriptions = Self.maximumSubscriptions
        (settings.pingInterval, settings.pongTimeout, settings.refreshDelay) = (.seconds(3), .seconds(2), .seconds(1))
        self.client = RoomClient(
            identifier: "me", settings: settings, authority: Authority(), onlyReceives: false, now: .zero)
    }

    mutating func receive(_ command: Command) throws(InvariantViolation) {
        self.now.elapsed += .milliseconds(250)
        self.now.unix = 1000 + UInt64(self.now.elapsed.components.seconds)
        if command.number != 0, !self.isClosed { self.unanswered[command.number, default: 0] += 1 }
        self.client.received(command, at: self.now)
        try self.act()
        if self.operations.count >= 3 { try self.answerAll() }
        if let deadline = self.client.deadline(at: self.now), deadline <= self.now.elapsed {
            self.client.timerFired(at: self.now)
            try self.act()
            let next = self.client.deadline(at: self.now)
            try InvariantViolation.expect(next.map { $0 > self.now.elapsed } ?? true, "a deadline that has passed")
        }
        let count = self.client.channels.count
        try InvariantViolation.expect(count <= Self.maximumSubscriptions, "\(count) subscriptions")
    }

    mutating func end() throws(InvariantViolation) {
        try self.act()
        try self.answerAll()
        if !self.isClosed {
            let pending = self.client.pendingCount
            try InvariantViolation.expect(pending == 0, "\(pending) operations are left")
            let numbers = self.unanswered.keys
            try InvariantViolation.expect(numbers.isEmpty, "no reply to \(numbers.sorted())")
            try InvariantViolation.expect(Set(self.client.channels) == self.rooms, "other rooms than \(self.rooms)")
        }
        self.client.connectionEnded()
        try self.act()
        try InvariantViolation.expect(self.rooms.isEmpty, "the client is left in \(self.rooms)")
        try InvariantViolation.expect(self.client.deadline(at: self.now) == nil, "a deadline after the end")
    }

    private mutating func act() throws(InvariantViolation) {
        while let action = self.client.nextAction() {
            switch action {
            case .send(let reply): try self.send(reply)
            case .close:
                try InvariantViolation.expect(!self.isClosed, "closed twice")
                self.isClosed = true
            case .leave(let channel):
                let wasThere = self.rooms.remove(channel) != nil
                try InvariantViolation.expect(wasThere, "leaves \(channel) without being there")
            case .register: self.client.registered(true, at: self.now)
            case .join, .publish, .presence, .presenceStats, .history:
                try InvariantViolation.expect(!self.isClosed, "\(action) after the end")
                self.operations.append(action)
                if !self.answersLater { try self.answerAll() }
            }
        }
    }

    private mutating func answerAll() throws(InvariantViolation) {
        while !self.operations.isEmpty {
            try self.answer(self.operations.removeFirst())
            try self.act()
        }
    }

    private mutating func answer(_ operation: RoomClient.Action) throws(InvariantViolation) {
        switch operation {
        case .join(let join):
            try InvariantViolation.expect(self.rooms.insert(join.channel).inserted, "joins \(join.channel) twice")
            var result = RoomClient.JoinResult(position: StreamPosition(offset: 3, epoch: "e"))
            if join.recovery != nil { result.publications = [self.lastPublication] }
            self.client.joined(join.channel, .success(result), at: self.now)
        case .publish(let number, let channel, let data, let info):
            self.lastPublication = Publication(data, info: info)
            try self.check(.push(channel: channel, .publication(self.lastPublication)))
            self.client.completed(.publish(number: number))
        case .presence(let number, _): self.client.completed(.presence(number: number, [self.client.info]))
        case .presenceStats(let number, _):
            self.client.completed(.presenceStats(number: number, clients: 1, users: 1))
        case .history(let number, let request):
            try InvariantViolation.expect(request.limit >= 0, "a history of \(request.limit)")
            self.client.completed(.history(number: number, [self.lastPublication], StreamPosition()))
        case .send, .leave, .register, .close: break
        }
    }

    private mutating func send(_ reply: Reply) throws(InvariantViolation) {
        try InvariantViolation.expect(!self.isClosed, "\(reply) after the end")
        try self.check(reply)
        guard let number = self.number(reply) else { return }
        guard let count = self.unanswered[number] else { throw InvariantViolation("\(reply) without a command") }
        self.unanswered[number] = count == 1 ? nil : count - 1
    }

    private func check(_ reply: Reply) throws(InvariantViolation) {
        let line = reply.encoded(.json)
        try InvariantViolation.expect(!line.contains(0x0A), "a reply of several lines")
        try InvariantViolation.expect(Payload.json(text: line) != nil, "a reply that is no JSON")
        let message = reply.encoded(.protobuf)
        var length = 0
        for (index, byte) in message.enumerated() {
            length |= Int(byte & 0x7F) << (7 * index)
            guard byte & 0x80 == 0 else { continue }
            try InvariantViolation.expect(index + 1 + length == message.count, "a reply of another length")
            return
        }
        throw InvariantViolation("a reply without a length")
    }

    /// Of the command that the reply answers; `nil` for a push.
    private func number(_ reply: Reply) -> UInt32? {
        switch reply {
        case .ping, .push: nil
        case .error(let number, _), .connect(let number, _), .subscribe(let number, _), .unsubscribe(let number),
            .publish(let number), .pong(let number), .presence(let number, _), .presenceStats(let number, _, _),
            .history(let number, _, _), .refresh(let number, _, _, _),
            .subscriptionRefresh(let number, _):
            number
        }
    }
}
