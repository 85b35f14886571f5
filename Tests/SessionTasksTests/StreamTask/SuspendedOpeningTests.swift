import SessionTasks
import SimulatedNetwork
import StreamTransport
import TestSupport
import Testing

@Suite("Suspending a stream task before its connection is ready")
struct SuspendedOpeningTests {
    /// What the peer leaves unanswered.
    enum Step: CaseIterable {
        case connecting, proxy, securing, startingTLS
    }

    private func task(at step: Step, of harness: TaskHarness, _ recorder: TaskRecorder) throws -> StreamTask {
        var settings = try SecureFixture.client()
        settings.timeout = .seconds(5)
        var target = OpeningTarget(.address(harness.peers.address))
        target.connectTimeout = .seconds(5)
        switch step {
        case .connecting: harness.testbed.network?.connectScripts[harness.peers.address] = .hangs
        case .proxy:
            target.place = .host("server.test", port: 80)
            target.proxy = ProxyServer(.address(harness.peers.address), .connect)
        case .securing: target.secure = settings
        case .startingTLS: break
        }
        let task = StreamTask(to: target, on: harness.loop)
        recorder.watchEnd(task)
        harness.perform {
            task.resumeOnLoop()
            if step == .startingTLS { recorder.secure(task, "secure", settings) }
            recorder.read(task, "r", 1, 9)
        }
        return task
    }

    @Test(arguments: Step.allCases)
    func noTimeoutRunsWhileSuspended(_ step: Step) throws {
        let harness = try TaskHarness(.simulation)
        let network = try #require(harness.testbed.network)
        let recorder = TaskRecorder()
        let task = try self.task(at: step, of: harness, recorder)
        _ = network.run(for: .seconds(3))
        harness.perform { task.suspendOnLoop() }
        _ = network.run(for: .seconds(60))
        #expect(recorder.end == nil && recorder.lines.isEmpty)
        // The rest of the time remains.
        harness.perform { task.resumeOnLoop() }
        #expect(!harness.run(atMost: .milliseconds(1800)) { recorder.end != nil })
        #expect(harness.run(atMost: .milliseconds(600)) { recorder.end != nil })
        #expect(recorder.lines.last?.hasPrefix("r!") == true)
        if step != .proxy { #expect(recorder.end == .some(.timedOut)) }
        harness.finish()
    }

    /// The steps of an opening that begin during the suspension begin with all of their time.
    @Test func stepThatBeginsWhileSuspendedHasItsWholeTime() throws {
        let harness = try TaskHarness(.simulation)
        let network = try #require(harness.testbed.network)
        let recorder = TaskRecorder()
        network.connectScripts[harness.peers.address] = .delayed(.seconds(1))
        let task = try self.task(at: .securing, of: harness, recorder)
        harness.perform { task.suspendOnLoop() }
        _ = network.run(for: .seconds(60))
        #expect(recorder.end == nil && task.record.isConnected)
        harness.perform { task.resumeOnLoop() }
        #expect(!harness.run(atMost: .milliseconds(4900)) { recorder.end != nil })
        #expect(harness.run(atMost: .milliseconds(200)) { recorder.end == .some(.timedOut) })
        harness.finish()
    }
}
