import HTTPTransport
import TestSupport
import Testing

@Suite("Distribution of connections")
struct HostConnectionsTests {
    private final class Connection {}

    /// Carries up to two exchanges.
    private final class Shared: MultiplexedConnection {
        var streams = 0
        var isStarting = false
        var hasStarted: Bool { !self.isStarting }
        var acceptsStream: Bool { self.streams < 2 && !self.isStarting }
        var isIdle: Bool { self.streams == 0 }

        func join() -> String {
            self.streams += 1
            return "join"
        }
    }

    private typealias Ledger = HostConnections<Connection, Shared, String>

    private func name(_ placement: Ledger.Placement) -> String {
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
        var ledger = Ledger(limit: 2)
        #expect((0..<3).map { _ in self.name(ledger.acquire(needsFresh: false)) } == ["open", "open", "wait"])
        ledger.openingFailed()
        #expect(self.name(ledger.acquire(needsFresh: false)) == "open")
    }

    /// A connection that carries one exchange already: its request went as early data.
    @Test func pendingHandshakeIsWaitedFor() {
        var ledger = Ledger(limit: 3, sharing: .unknown)
        _ = ledger.acquire(needsFresh: false)
        let shared = Shared()
        (shared.streams, shared.isStarting) = (1, true)
        ledger.opened(shared)
        #expect(self.name(ledger.acquire(needsFresh: false)) == "wait" && ledger.occupied == 1)
        #expect(self.name(ledger.acquire(needsFresh: true)) == "open")
        shared.isStarting = false
        #expect(self.name(ledger.acquire(needsFresh: false)) == "join")
    }

    /// It may take long: the timeout of the task stands still.
    @Test func openingOfASuspendedTaskIsNotWaitedFor() {
        var ledger = Ledger(limit: 2, sharing: .unknown)
        _ = ledger.acquire(needsFresh: false)
        #expect(self.name(ledger.acquire(needsFresh: false)) == "wait")
        ledger.openingHeld(true)
        #expect(self.name(ledger.acquire(needsFresh: false)) == "open")
        #expect(self.name(ledger.acquire(needsFresh: false)) == "wait")
        ledger.openingHeld(false)
        ledger.openingCancelled()
        ledger.openingCancelled()
        #expect(ledger.isEmpty && ledger.opening == 0)
    }

    @Test func mostRecentlyUsedConnectionIsTaken() {
        var ledger = Ledger(limit: 2)
        _ = ledger.acquire(needsFresh: false)
        _ = ledger.acquire(needsFresh: false)
        let (first, second) = (Connection(), Connection())
        ledger.freed(first)
        ledger.freed(second)
        guard case .use(let used) = ledger.acquire(needsFresh: false) else { return #expect(Bool(false)) }
        #expect(used === second)
    }

    @Test func freshConnectionReplacesAnIdleOne() {
        var ledger = Ledger(limit: 1)
        _ = ledger.acquire(needsFresh: false)
        #expect(self.name(ledger.acquire(needsFresh: true)) == "wait")
        let old = Connection()
        ledger.freed(old)
        guard case .replace(let replaced) = ledger.acquire(needsFresh: true) else { return #expect(Bool(false)) }
        #expect(replaced === old)
        #expect(ledger.occupied == 1)
        #expect(ledger.idle.isEmpty)
    }

    @Test func waitingExchangesAreServedByPriorityThenArrival() {
        var ledger = Ledger(limit: 1)
        _ = ledger.acquire(needsFresh: false)
        for (number, priority) in [(1, 0.5), (2, 0.25), (3, 0.75), (4, 0.5)] as [(UInt64, Float)] {
            ledger.waitQueue.add("\(number)", number: number, priority: priority, needsFresh: false)
        }
        ledger.waitQueue.add("5", number: 0, priority: 0.5, needsFresh: true, inFront: true)
        ledger.waitQueue.remove(4)
        #expect(ledger.next() == nil)
        var served: [String] = []
        let connection = Connection()
        ledger.freed(connection)
        while let (who, placement) = ledger.next() {
            served.append("\(who) \(self.name(placement))")
            ledger.freed(Connection())
        }
        #expect(served == ["3 use", "5 replace", "1 use", "2 use"])
    }

    @Test func closedConnectionIsRemovedOnce() {
        var ledger = Ledger(limit: 1)
        _ = ledger.acquire(needsFresh: false)
        let connection = Connection()
        ledger.freed(connection)
        ledger.closed(connection)
        #expect(ledger.isEmpty)
    }

    /// Every event in any order: never more connections than the limit, and no exchange waits below it.
    @Test(arguments: 1...20)
    func numberOfConnectionsNeverExceedsItsLimit(_ seed: UInt64) {
        var chance = SeededGenerator(seed: seed)
        var ledger = Ledger(limit: 3)
        var busy: [Connection] = []
        var opening = 0
        var number: UInt64 = 0
        func take(_ placement: Ledger.Placement) {
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
                let placement = ledger.acquire(needsFresh: fresh)
                number += 1
                if case .wait = placement { ledger.waitQueue.add("", number: number, priority: 0.5, needsFresh: fresh) }
                take(placement)
            case 1 where opening > 0:
                opening -= 1
                ledger.opened()
                busy.append(Connection())
            case 2 where opening > 0:
                opening -= 1
                ledger.openingFailed()
            case 3 where !busy.isEmpty: ledger.freed(busy.removeFirst())
            case 4 where !busy.isEmpty: ledger.closed(busy.removeLast())
            default: break
            }
            while let (_, placement) = ledger.next() { take(placement) }
            #expect(ledger.occupied == busy.count + opening && ledger.opening == opening, "seed \(seed), step \(step)")
            #expect(ledger.occupied + ledger.idle.count <= 3, "seed \(seed), step \(step)")
            #expect(ledger.waitQueue.isEmpty || ledger.occupied == 3, "seed \(seed), step \(step)")
        }
    }

    // MARK: Shared connections

    /// All exchanges but the first wait for a connection that they may be able to share.
    @Test(arguments: [ConnectionSharing.unknown, .multiplexed])
    func exchangesWaitForAConnectionTheyMightShare(_ sharing: ConnectionSharing) {
        var ledger = Ledger(limit: 6, sharing: sharing)
        #expect((0..<2).map { _ in self.name(ledger.acquire(needsFresh: false)) } == ["open", "wait"])
        #expect(self.name(ledger.acquire(needsFresh: true)) == "open")
    }

    @Test func exchangesJoinASharedConnectionUpToItsLimit() {
        var ledger = Ledger(limit: 2, sharing: .unknown)
        _ = ledger.acquire(needsFresh: false)
        let connection = Shared()
        ledger.opened(connection)
        #expect(ledger.sharing == .multiplexed && ledger.occupied == 1 && ledger.opening == 0)
        let placements = (0..<4).map { _ in self.name(ledger.acquire(needsFresh: false)) }
        #expect(placements == ["join", "join", "open", "wait"])
        ledger.opened(Shared())
        #expect(self.name(ledger.acquire(needsFresh: false)) == "join" && ledger.occupied == 2)
        ledger.closed(connection)
        ledger.closed(connection)
        #expect(ledger.occupied == 1 && !ledger.isEmpty)
    }

    @Test func exclusiveConnectionLetsTheOthersOpenTheirs() {
        var ledger = Ledger(limit: 3, sharing: .unknown)
        _ = ledger.acquire(needsFresh: false)
        ledger.opened()
        #expect(ledger.sharing == .exclusive)
        #expect((0..<3).map { _ in self.name(ledger.acquire(needsFresh: false)) } == ["open", "open", "wait"])
    }

    /// Otherwise many exchanges with an unreachable server would fail one after the other.
    @Test func failureToOpenLetsTheOthersOpenTheirs() {
        var ledger = Ledger(limit: 3, sharing: .unknown)
        _ = ledger.acquire(needsFresh: false)
        ledger.openingCancelled()
        #expect((0..<2).map { _ in self.name(ledger.acquire(needsFresh: false)) } == ["open", "wait"])
        ledger.openingFailed()
        #expect((0..<2).map { _ in self.name(ledger.acquire(needsFresh: false)) } == ["open", "open"])
    }

    @Test func freshConnectionReplacesASharedOneThatIsIdle() {
        var ledger = Ledger(limit: 1, sharing: .multiplexed)
        _ = ledger.acquire(needsFresh: false)
        let connection = Shared()
        ledger.opened(connection)
        connection.streams = 1
        #expect(self.name(ledger.acquire(needsFresh: true)) == "wait")
        connection.streams = 0
        #expect(self.name(ledger.acquire(needsFresh: true)) == "replace shared")
        #expect(ledger.occupied == 1 && ledger.opening == 1 && ledger.shared.isEmpty)
    }
}
