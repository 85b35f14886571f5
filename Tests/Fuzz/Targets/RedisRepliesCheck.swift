import RedisEngine

/// The first byte of the input selects who reads the rest: a reader with small limits, or a connection in its handshake,
/// with commands and subscriptions under RESP3, or with a subscription under RESP2.
enum RedisRepliesCheck {
    private enum Role: CaseIterable {
        case reader, handshake, connection, connectionWithRESP2
    }

    private struct Seen: Equatable {
        var values: [RedisValue] = []
        var violation: RedisViolation?
        var events: [RedisConnection.Event] = []
    }

    private static let limits = RedisReplyLimits(byteCount: 4096, depth: 5, elementCount: 50, lineLength: 100)

    static func run(_ bytes: [UInt8]) throws(InvariantViolation) {
        guard let first = bytes.first else { return }
        let role = Role.allCases[Int(first) % Role.allCases.count]
        let wire = Array(bytes[1...])
        try InputSplit.expectSame(wire, "\(role)") { split throws(InvariantViolation) in
            role == .reader ? try self.read(wire, split) : try self.receive(wire, split, role)
        }
    }

    private static func read(_ wire: [UInt8], _ split: InputSplit) throws(InvariantViolation) -> Seen {
        var reader = RedisReplyReader(limits: self.limits)
        var seen = Seen()
        for piece in split.pieces(of: wire) {
            var consumed = 0
            do {
                while let value = try reader.read(piece.span.bytes, consumed: &consumed) { seen.values.append(value) }
            } catch {
                try InvariantViolation.expect(
                    seen.violation == nil || seen.violation == error, "\(split): \(error) after another violation")
                seen.violation = error
                continue
            }
            try InvariantViolation.expect(seen.violation == nil, "\(split): reading goes on after a violation")
            try InvariantViolation.expect(consumed == piece.count, "\(split): bytes were left over")
            try InvariantViolation.expect(
                reader.heldByteCount <= 3 * self.limits.byteCount, "\(split): \(reader.heldByteCount) bytes are held")
        }
        return seen
    }

    private static func receive(
        _ wire: [UInt8], _ split: InputSplit, _ role: Role
    ) throws(InvariantViolation) -> Seen {
        var connection = try self.connection(role)
        var seen = Seen()
        for piece in split.pieces(of: wire) {
            var position = 0
            while let event = connection.nextEvent(in: piece.span.bytes, at: &position, now: .seconds(1)) {
                try InvariantViolation.expect(!self.hasEnded(seen), "\(split): \(event) after the end")
                seen.events.append(event)
                _ = connection.takeOutput()
            }
            try InvariantViolation.expect(position == piece.count || self.hasEnded(seen), "\(split): bytes left over")
        }
        if let event = connection.close() { seen.events.append(event) }
        try InvariantViolation.expect(self.hasEnded(seen), "\(split): no end")
        try InvariantViolation.expect(connection.nextDeadline == nil, "\(split): a deadline after the end")
        return seen
    }

    private static func hasEnded(_ seen: Seen) -> Bool {
        if case .ended = seen.events.last { true } else { false }
    }

    private static func connection(_ role: Role) throws(InvariantViolation) -> RedisConnection {
        var settings = RedisConnectionSettings()
        settings.replyLimits = self.limits
        settings.usesRESP3 = role != .connectionWithRESP2
        settings.database = role == .handshake ? 1 : 0
        var connection = RedisConnection(settings: settings)
        _ = connection.connected(now: .zero)
        if role == .connection { try self.answerHello(&connection) }
        do {
            let deadline = Duration.seconds(9)
            let channels = [Array("a".utf8), Array("b".utf8)]
            _ = try connection.submit(RedisCommand("GET", "k"), deadline: deadline)
            _ = try connection.submit(RedisCommand("GET", "k"), deadline: deadline, isAsking: true)
            _ = try connection.changeSubscription(.channel, isSubscribed: true, channels: channels, deadline: deadline)
            if role == .connection { _ = try connection.submit(RedisCommand("GET", "k"), deadline: deadline) }
            _ = try connection.changeSubscription(.shard, isSubscribed: false, channels: channels, deadline: deadline)
        } catch {
            throw InvariantViolation("refused: \(error)")
        }
        _ = connection.takeOutput()
        return connection
    }

    private static func answerHello(_ connection: inout RedisConnection) throws(InvariantViolation) {
        let reply = Array("%1\r\n+proto\r\n:3\r\n".utf8)
        var position = 0
        let event = connection.nextEvent(in: reply.span.bytes, at: &position, now: .zero)
        guard case .ready = event else { throw InvariantViolation("HELLO gives no connection") }
    }
}
