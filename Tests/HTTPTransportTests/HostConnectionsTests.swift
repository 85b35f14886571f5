import HTTPTransport
import TestSupport
import Testing

@Suite("Distribution of connections")
struct HostConnectionsTests {
    private final class Connection {}

    /// Carries up to two exchanges, or as many as its server allows.
    private final class Shared: MultiplexedConnection {
        var streams = 0
        var limit = 2
        var isStarting = false
        var hasStarted: Bool { !self.isStarting }
        var acceptsStream: Bool { self.streams < self.limit && !self.isStarting }
        var isBlocked: Bool { self.limit == 0 && !self.isStarting }
        var isIdle: Bool { self.streams == 0 }

        func join() -> String {
            self.streams += 1
            return "join"
        }
    }

    private typealias Connections = HostConnections<Connection, Shared, String>

    private func name(_ placement: Connections.Placement) -> String {
        switch placement {
        case .use: "use"
        case .join(let connection): connection.join()
        case .open: "open"
        case .replace: "replace"
        case .replaceShared: "replace shared"
        case .wait: "wait"
        }
    }

    @Test func requestsBeyondTheLimitWait() {
        var connections = Connections(limit: 2)
        #expect((0..<3).map { _ in self.name(connections.acquire(needsFresh: false)) } == ["open", "open", "wait"])
        connections.openingFailed()
        #expect(self.name(connections.acquire(needsFresh: false)) == "open")
    }

    /// A connection that carries one exchange already: its request went as early data.
    @Test func pendingHandshakeIsWaitedFor() {
        var connections = Connections(limit: 3, sharing: .unknown)
        _ = connections.acquire(needsFresh: false)
        let shared = Shared()
        (shared.streams, shared.isStarting) = (1, true)
        connections.opened(shared)
        #expect(self.name(connections.acquire(needsFresh: false)) == "wait" && connections.occupied == 1)
        #expect(self.name(connections.acquire(needsFresh: true)) == "open")
        shared.isStarting = false
        #expect(self.name(connections.acquire(needsFresh: false)) == "join")
    }

    /// It may take long: the timeout of the task stands still.
    @Test func openingOfASuspendedTaskIsNotWaitedFor() {
        var connections = Connections(limit: 2, sharing: .unknown)
        _ = connections.acquire(needsFresh: false)
        #expect(self.name(connections.acquire(needsFresh: false)) == "wait")
        connections.openingHeld(true)
        #expect(self.name(connections.acquire(needsFresh: false)) == "open")
        #expect(self.name(connections.acquire(needsFresh: false)) == "wait")
        connections.openingHeld(false)
        connections.openingCancelled()
        connections.openingCancelled()
        #expect(connections.isEmpty && connections.opening == 0)
    }

    @Test func mostRecentlyUsedConnectionIsTaken() {
        var connections = Connections(limit: 2)
        _ = connections.acquire(needsFresh: false)
        _ = connections.acquire(needsFresh: false)
        let (first, second) = (Connection(), Connection())
        connections.freed(first)
        connections.freed(second)
        guard case .use(let used) = connections.acquire(needsFresh: false) else { return #expect(Bool(false)) }
        #expect(used === second)
    }

    @Test func freshConnectionReplacesAnIdleOne() {
        var connections = Connections(limit: 1)
        _ = connections.acquire(needsFresh: false)
        #expect(self.name(connections.acquire(needsFresh: true)) == "wait")
        let old = Connection()
        connections.freed(old)
        guard case .replace(let replaced) = connections.acquire(needsFresh: true) else { return #expect(Bool(false)) }
        #expect(replaced === old)
        #expect(connections.occupied == 1)
        #expect(connections.idle.isEmpty)
    }

    @Test func waitingExchangesAreServedByPriorityThenArrival() {
        var connections = Connections(limit: 1)
        _ = connections.acquire(needsFresh: false)
        for (number, priority) in [(1, 0.5), (2, 0.25), (3, 0.75), (4, 0.5)] as [(UInt64, Float)] {
            connections.waitQueue.add("\(number)", number: number, priority: priority, needsFresh: false)
        }
        connections.waitQueue.add("5", number: 0, priority: 0.5, needsFresh: true, inFront: true)
        connections.waitQueue.remove(4)
        #expect(connections.next() == nil)
        var served: [String] = []
        let connection = Connection()
        connections.freed(connection)
        while let (who, placement) = connections.next() {
            served.append("\(who) \(self.name(placement))")
            connections.freed(Connection())
        }
        #expect(served == ["3 use", "5 replace", "1 use", "2 use"])
    }

    @Test func closedConnectionIsRemovedOnce() {
        var connections = Connections(limit: 1)
        _ = connections.acquire(needsFresh: false)
        let connection = Connection()
        connections.freed(connection)
        connections.closed(connection)
        #expect(connections.isEmpty)
    }

    /// Every event in any order: never more connections than the limit, and no exchange waits below it.
    @Test(arguments: 1...20)
    func numberOfConnectionsNeverExceedsItsLimit(_ seed: UInt64) {
        var chance = SeededGenerator(seed: seed)
        var connections = Connections(limit: 3)
        var busy: [Connection] = []
        var opening = 0
        var number: UInt64 = 0
        func take(_ placement: Connections.Placement) {
            switch placement {
            case .use(let connection): busy.append(connection)
            case .open, .replace: opening += 1
            case .join, .replaceShared, .wait: break
            }
        }
        for step in 0..<400 {
            switch UInt64.random(in: 0..<5, using: &chance) {
            case 0:
                let fresh = Bool.random(using: &chance)
                let placement = connections.acquire(needsFresh: fresh)
                number += 1
                if case .wait = placement {
                    connections.waitQueue.add("", number: number, priority: 0.5, needsFresh: fresh)
                }
                take(placement)
            case 1 where opening > 0:
                opening -= 1
                connections.opened()
                busy.append(Connection())
            case 2 where opening > 0:
                opening -= 1
                connections.openingFailed()
            case 3 where !busy.isEmpty: connections.freed(busy.removeFirst())
            case 4 where !busy.isEmpty: connections.closed(busy.removeLast())
            default: break
            }
            while let (_, placement) = connections.next() { take(placement) }
            #expect(
                connections.occupied == busy.count + opening && connections.opening == opening,
                "seed \(seed), step \(step)")
            #expect(connections.occupied + connections.idle.count <= 3, "seed \(seed), step \(step)")
            #expect(connections.waitQueue.isEmpty || connections.occupied == 3, "seed \(seed), step \(step)")
        }
    }

    // MARK: Shared connections

    /// All exchanges but the first wait for a connection that they may be able to share.
    @Test(arguments: [ConnectionSharing.unknown, .multiplexed])
    func exchangesWaitForAConnectionTheyMightShare(_ sharing: ConnectionSharing) {
        var connections = Connections(limit: 6, sharing: sharing)
        #expect((0..<2).map { _ in self.name(connections.acquire(needsFresh: false)) } == ["open", "wait"])
        #expect(self.name(connections.acquire(needsFresh: true)) == "open")
    }

    @Test func exchangesJoinASharedConnectionUpToItsLimit() {
        var connections = Connections(limit: 2, sharing: .unknown)
        _ = connections.acquire(needsFresh: false)
        let connection = Shared()
        connections.opened(connection)
        #expect(connections.sharing == .multiplexed && connections.occupied == 1 && connections.opening == 0)
        let placements = (0..<4).map { _ in self.name(connections.acquire(needsFresh: false)) }
        #expect(placements == ["join", "join", "open", "wait"])
        connections.opened(Shared())
        #expect(self.name(connections.acquire(needsFresh: false)) == "join" && connections.occupied == 2)
        connections.closed(connection)
        connections.closed(connection)
        #expect(connections.occupied == 1 && !connections.isEmpty)
    }

    /// A connection whose server allows no exchange.
    private func openBlocked(in connections: inout Connections) -> Shared {
        _ = connections.acquire(needsFresh: false)
        let connection = Shared()
        connection.limit = 0
        connections.opened(connection)
        return connection
    }

    /// Another connection would not allow any either.
    @Test func exchangesWaitForAConnectionWhoseServerAllowsNone() {
        var connections = Connections(limit: 2, sharing: .multiplexed)
        let connection = self.openBlocked(in: &connections)
        #expect(self.name(connections.acquire(needsFresh: false)) == "wait" && connections.isBlocked)
        #expect(self.name(connections.acquire(needsFresh: true)) == "open")
        connection.limit = 1
        #expect(self.name(connections.acquire(needsFresh: false)) == "join" && !connections.isBlocked)
    }

    @Test func connectionWhoseServerAllowsNoExchangeIsReplacedOnDemandOnly() {
        var connections = Connections(limit: 1, sharing: .multiplexed)
        _ = self.openBlocked(in: &connections)
        #expect(self.name(connections.acquire(needsFresh: false)) == "wait")
        #expect(self.name(connections.acquire(needsFresh: true)) == "replace shared")
    }

    @Test func exclusiveConnectionLetsTheOthersOpenTheirs() {
        var connections = Connections(limit: 3, sharing: .unknown)
        _ = connections.acquire(needsFresh: false)
        connections.opened()
        #expect(connections.sharing == .exclusive)
        #expect((0..<3).map { _ in self.name(connections.acquire(needsFresh: false)) } == ["open", "open", "wait"])
    }

    /// Otherwise many exchanges with an unreachable server would fail one after the other.
    @Test func failureToOpenLetsTheOthersOpenTheirs() {
        var connections = Connections(limit: 3, sharing: .unknown)
        _ = connections.acquire(needsFresh: false)
        connections.openingCancelled()
        #expect((0..<2).map { _ in self.name(connections.acquire(needsFresh: false)) } == ["open", "wait"])
        connections.openingFailed()
        #expect((0..<2).map { _ in self.name(connections.acquire(needsFresh: false)) } == ["open", "open"])
    }

    @Test func freshConnectionReplacesASharedOneThatIsIdle() {
        var connections = Connections(limit: 1, sharing: .multiplexed)
        _ = connections.acquire(needsFresh: false)
        let connection = Shared()
        connections.opened(connection)
        connection.streams = 1
        #expect(self.name(connections.acquire(needsFresh: true)) == "wait")
        connection.streams = 0
        #expect(self.name(connections.acquire(needsFresh: true)) == "replace shared")
        #expect(connections.occupied == 1 && connections.opening == 1 && connections.shared.isEmpty)
    }
}
