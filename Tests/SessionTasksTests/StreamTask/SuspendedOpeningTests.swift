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

    private func task(at step: Step, of meeting: TaskMeeting, _ diary: TaskDiary) throws -> StreamTask {
        var settings = try SecureFixture.client()
        settings.timeout = .seconds(5)
        var target = OpeningTarget(.address(meeting.peers.address))
        target.connectTimeout = .seconds(5)
        switch step {
        case .connecting: meeting.ground.network?.connectScripts[meeting.peers.address] = .hangs
        case .proxy:
            target.place = .host("server.test", port: 80)
            target.proxy = ProxyServer(.address(meeting.peers.address), .connect)
        case .securing: target.secure = settings
        case .startingTLS: break
        }
        let task = StreamTask(to: target, on: meeting.loop)
        diary.watchEnd(task)
        meeting.perform {
            task.resumeOnLoop()
            if step == .startingTLS { diary.secure(task, "secure", settings) }
            diary.read(task, "r", 1, 9)
        }
        return task
    }

    @Test(arguments: Step.allCases)
    func noTimeoutRunsWhileSuspended(_ step: Step) throws {
        let meeting = try TaskMeeting(.simulation)
        let network = try #require(meeting.ground.network)
        let diary = TaskDiary()
        let task = try self.task(at: step, of: meeting, diary)
        _ = network.run(for: .seconds(3))
        meeting.perform { task.suspendOnLoop() }
        _ = network.run(for: .seconds(60))
        #expect(diary.end == nil && diary.lines.isEmpty)
        // The rest of the time remains.
        meeting.perform { task.resumeOnLoop() }
        #expect(!meeting.run(atMost: .milliseconds(1800)) { diary.end != nil })
        #expect(meeting.run(atMost: .milliseconds(600)) { diary.end != nil })
        #expect(diary.lines.last?.hasPrefix("r!") == true)
        if step != .proxy { #expect(diary.end == .some(.timedOut)) }
        meeting.finish()
    }

    /// The steps of an opening that begin during the suspension begin with all of their time.
    @Test func stepThatBeginsWhileSuspendedHasItsWholeTime() throws {
        let meeting = try TaskMeeting(.simulation)
        let network = try #require(meeting.ground.network)
        let diary = TaskDiary()
        network.connectScripts[meeting.peers.address] = .delayed(.seconds(1))
        let task = try self.task(at: .securing, of: meeting, diary)
        meeting.perform { task.suspendOnLoop() }
        _ = network.run(for: .seconds(60))
        #expect(diary.end == nil && task.record.isConnected)
        meeting.perform { task.resumeOnLoop() }
        #expect(!meeting.run(atMost: .milliseconds(4900)) { diary.end != nil })
        #expect(meeting.run(atMost: .milliseconds(200)) { diary.end == .some(.timedOut) })
        meeting.finish()
    }
}
