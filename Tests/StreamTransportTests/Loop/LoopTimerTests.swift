import SimulatedNetwork
import StreamTransport
import TestSupport
import Testing

@Suite("Timers of a loop, simulated and real")
struct LoopTimerTests {
    typealias Kind = TransportTestbed.Kind

    @Test(arguments: Kind.allCases)
    func timersFireInTheOrderOfTheirDeadlines(_ kind: Kind) throws {
        let testbed = TransportTestbed(kind)
        let loop = try testbed.makeLoop()
        let log = TimerLog(loop)
        let timers = ["c", "a", "d", "b"].map { log.timer($0) }
        var start = loop.now
        testbed.perform(on: loop) {
            start = loop.now
            for (timer, delay) in zip(timers, [6, 2, 6, 4]) {
                loop.arm(timer, after: .milliseconds(delay), target: log)
            }
        }
        #expect(testbed.run(until: { log.fired.count == 4 }))
        #expect(log.fired == ["a", "b", "c", "d"])
        for (instant, delay) in zip(log.instants, [2, 4, 6, 6]) {
            let waited = start.duration(to: instant)
            #expect(kind == .simulation ? waited == .milliseconds(delay) : waited >= .milliseconds(delay))
        }
        #expect(timers.allSatisfy { $0.deadline == nil })
    }

    @Test func timersMoveLaterAndEarlier() throws {
        let testbed = TransportTestbed(.simulation)
        let loop = try testbed.makeLoop()
        let network = try #require(testbed.network)
        let log = TimerLog(loop)
        let (later, earlier, both) = (log.timer("later"), log.timer("earlier"), log.timer("both"))
        let start = network.now
        testbed.perform(on: loop) {
            for timer in [later, earlier, both] { loop.arm(timer, after: .seconds(10), target: log) }
            loop.arm(later, after: .seconds(20), target: log)
            loop.arm(earlier, after: .seconds(5), target: log)
            loop.arm(both, after: .seconds(1), target: log)
            loop.arm(both, after: .seconds(15), target: log)
        }
        #expect(network.runUntilIdle() == .idle)
        #expect(log.fired == ["earlier", "both", "later"])
        #expect(log.instants.map { start.duration(to: $0) } == [.seconds(5), .seconds(15), .seconds(20)])
    }

    @Test func disarmedTimersFireOnlyWhenRearmed() throws {
        let testbed = TransportTestbed(.simulation)
        let loop = try testbed.makeLoop()
        let network = try #require(testbed.network)
        let log = TimerLog(loop)
        let (off, again) = (log.timer("off"), log.timer("again"))
        let start = network.now
        log.onFire = { timer in
            // Re-armed from its own firing, until three times are full.
            if log.fired.count < 3 { loop.arm(timer, after: .seconds(1), target: log) }
        }
        testbed.perform(on: loop) {
            loop.arm(off, after: .seconds(2), target: log)
            loop.arm(again, after: .seconds(1), target: log)
            loop.disarm(off)
        }
        #expect(network.runUntilIdle() == .idle)
        #expect(log.fired == ["again", "again", "again"])
        #expect(log.instants.map { start.duration(to: $0) } == [.seconds(1), .seconds(2), .seconds(3)])
        testbed.perform(on: loop) { loop.arm(off, after: .seconds(1), target: log) }
        network.runUntilIdle()
        #expect(log.fired.last == "off")
    }

    @Test func timersFireAsInAModel() throws {
        for seed in UInt64(0)..<40 {
            var chance = SeededGenerator(seed: seed)
            let testbed = TransportTestbed(.simulation, seed: seed)
            let loop = try testbed.makeLoop()
            let network = try #require(testbed.network)
            let log = TimerLog(loop)
            let timers = (0..<8).map { log.timer("\($0)") }
            var deadlines: [Int: MonotonicInstant] = [:]
            var expected: [(at: MonotonicInstant, name: String)] = []
            for _ in 0..<60 {
                let index = Int.random(in: 0..<timers.count, using: &chance)
                let delay = Duration.milliseconds(Int.random(in: 1...50, using: &chance))
                let disarms = Int.random(in: 0..<4, using: &chance) == 0
                testbed.perform(on: loop) {
                    if disarms {
                        loop.disarm(timers[index])
                    } else {
                        loop.arm(timers[index], after: delay, target: log)
                    }
                }
                deadlines[index] = disarms ? nil : network.now.advanced(by: delay)
                let end = network.now.advanced(by: .milliseconds(Int.random(in: 0...10, using: &chance)))
                for (timer, deadline) in deadlines.sorted(by: { ($0.value, $0.key) < ($1.value, $1.key) })
                where deadline <= end {
                    expected.append((deadline, "\(timer)"))
                    deadlines[timer] = nil
                }
                network.run(for: network.now.duration(to: end))
            }
            #expect(log.instants == expected.map { $0.at }, "seed \(seed)")
            #expect(log.fired.sorted() == expected.map { $0.name }.sorted(), "seed \(seed)")
        }
    }

    @Test func aHeldTimerKeepsTheRestOfItsTime() throws {
        let testbed = TransportTestbed(.simulation)
        let loop = try testbed.makeLoop()
        let network = try #require(testbed.network)
        let log = TimerLog(loop)
        var timer = HoldableTimer()
        let start = network.now
        testbed.perform(on: loop) { timer.arm(after: .seconds(5), on: loop, target: log) }
        _ = network.run(for: .seconds(2))
        testbed.perform(on: loop) { timer.setHeld(true, on: loop, target: log) }
        _ = network.run(for: .seconds(30))
        #expect(log.fired.isEmpty && timer.isHeld)
        testbed.perform(on: loop) { timer.setHeld(false, on: loop, target: log) }
        #expect(network.runUntilIdle() == .idle)
        #expect(log.instants.map { start.duration(to: $0) } == [.seconds(35)])
    }

    @Test func aTimerArmedOrDisarmedWhileHeldWaitsForItsRelease() throws {
        let testbed = TransportTestbed(.simulation)
        let loop = try testbed.makeLoop()
        let network = try #require(testbed.network)
        let log = TimerLog(loop)
        var (armed, disarmed) = (HoldableTimer(), HoldableTimer())
        testbed.perform(on: loop) {
            disarmed.arm(after: .seconds(5), on: loop, target: log)
            armed.setHeld(true, on: loop, target: log)
            disarmed.setHeld(true, on: loop, target: log)
            armed.arm(after: .seconds(5), on: loop, target: log)
            disarmed.disarm(on: loop)
        }
        _ = network.run(for: .seconds(30))
        #expect(log.fired.isEmpty)
        let released = network.now
        testbed.perform(on: loop) {
            armed.setHeld(false, on: loop, target: log)
            disarmed.setHeld(false, on: loop, target: log)
        }
        #expect(network.runUntilIdle() == .idle)
        #expect(log.instants.map { released.duration(to: $0) } == [.seconds(5)])
    }
}
