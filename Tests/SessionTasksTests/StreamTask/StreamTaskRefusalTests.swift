import SessionTasks
import StreamTransport
import TestSupport
import Testing

@Suite("Refused operations of stream tasks")
struct StreamTaskRefusalTests {
    @Test func invalidArgumentsAreUsageErrors() throws {
        let harness = try TaskHarness(.simulation)
        let (task, _) = try harness.accepted()
        let recorder = TaskRecorder()
        harness.perform {
            recorder.read(task, "none", 0, 0)
            recorder.read(task, "crossed", 3, 2)
            recorder.read(task, "negative", -1, 2)
        }
        #expect(recorder.lines.count == 3 && recorder.lines.allSatisfy { $0.contains("minimum") })
        harness.perform { task.cancelOnLoop() }
        harness.finish()
    }

    @Test func failedConnectHasItsReason() throws {
        let harness = try TaskHarness(.simulation)
        let nowhere = SocketAddress.ipv4(address: 0x7f00_0001, port: 9)
        let task = StreamTask(to: OpeningTarget(.address(nowhere)), on: harness.loop)
        let recorder = TaskRecorder()
        recorder.watchEnd(task)
        harness.perform {
            recorder.read(task, "r", 1, 9)
            task.resumeOnLoop()
        }
        #expect(harness.run { recorder.end != nil })
        if case .cannotConnect? = recorder.end ?? nil {
        } else {
            Issue.record("ended with \(String(describing: recorder.end))")
        }
        #expect(!task.record.isConnected)
        harness.finish()
    }
}
