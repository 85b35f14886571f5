import RedisEngine
import TestSupport
import Testing

@Suite("Reconnecting to Redis")
struct RedisReconnectionTests {
    private var generator = SeededGenerator(seed: 7)

    private struct NoPause: Error {}

    private mutating func end(
        _ machine: inout RedisReconnection, _ failure: RedisConnectionFailure = .lost, now: Duration = .zero
    ) -> RedisReconnection.Action {
        machine.connectionEnded(failure, now: now, using: &self.generator)
    }

    /// - Returns: the pause after a failure.
    private mutating func fail(
        _ machine: inout RedisReconnection, _ failure: RedisConnectionFailure = .lost, now: Duration = .zero
    ) throws -> Duration {
        guard case .wait(let until) = self.end(&machine, failure, now: now) else { throw NoPause() }
        return until - now
    }

    @Test mutating func pausesGrowFrom50MillisecondsTo5Seconds() throws {
        var machine = RedisReconnection()
        #expect(machine.start() == .connect(rediscovers: true))
        for longest in [50, 100, 200, 400, 800, 1600, 3200, 5000, 5000, 5000] {
            let pause = try self.fail(&machine)
            #expect(pause >= .milliseconds(longest) / 2 && pause <= .milliseconds(longest))
            #expect(machine.nextDeadline == pause)
            #expect(machine.waitOver(now: pause - .nanoseconds(1)) == .wait(until: pause))
            #expect(machine.waitOver(now: pause) == .connect(rediscovers: true))
        }
    }

    @Test mutating func pausesDiffer() throws {
        var pauses: Set<Duration> = []
        for _ in 0..<100 {
            var machine = RedisReconnection()
            _ = machine.start()
            pauses.insert(try self.fail(&machine))
        }
        #expect(pauses.count > 90)
    }

    @Test mutating func stableConnectionBeginsAgainWithTheFirstPause() throws {
        var machine = RedisReconnection()
        _ = machine.start()
        var now = Duration.zero
        for (ready, longest) in [(9.9, 50), (9.9, 100), (10, 50), (0, 100)] {
            machine.connectionReady(now: now)
            now += .seconds(ready)
            let pause = try self.fail(&machine, now: now)
            #expect(pause >= .milliseconds(longest) / 2 && pause <= .milliseconds(longest))
            now += pause
            #expect(machine.waitOver(now: now) == .connect(rediscovers: true))
        }
    }

    @Test mutating func refusedSettingsWaitLongest() throws {
        var machine = RedisReconnection()
        _ = machine.start()
        let refused = RedisConnectionFailure.handshakeRefused(step: "HELLO", RedisServerError("WRONGPASS no".utf8))
        let pause = try self.fail(&machine, refused)
        #expect(pause >= .milliseconds(2500))
    }

    @Test mutating func changedServerEndsThePause() {
        var machine = RedisReconnection()
        #expect(machine.serverChanged() == .ignore)
        _ = machine.start()
        #expect(machine.serverChanged() == .ignore)
        _ = self.end(&machine)
        #expect(machine.serverChanged() == .connect(rediscovers: true))
        #expect(machine.nextDeadline == nil)
    }

    @Test mutating func eventsOutOfPlaceAreIgnored() {
        var machine = RedisReconnection()
        #expect(machine.waitOver(now: .zero) == .ignore)
        let ignored = self.end(&machine)
        #expect(ignored == .ignore)
        machine.connectionReady(now: .zero)
        #expect(machine.start() == .connect(rediscovers: true))
        #expect(machine.start() == .ignore)
        _ = self.end(&machine)
        let ignoredWhileWaiting = self.end(&machine)
        #expect(ignoredWhileWaiting == .ignore)
        #expect(machine.start() == .ignore)
        machine.stop()
        #expect(machine.nextDeadline == nil)
        #expect(machine.waitOver(now: .seconds(60)) == .ignore)
        let ignoredWhenStopped = self.end(&machine)
        #expect(ignoredWhenStopped == .ignore)
        #expect(machine.start() == .connect(rediscovers: true))
    }
}
