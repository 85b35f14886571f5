import SessionTasks
import StreamTransport
import TestSupport
import Testing

@Suite("Writes to a stream task beside its relay")
struct RelayedWritesTests {
    @Test(arguments: TransportTestbed.Kind.allCases)
    func writesContinueWhenThePeerReads(_ kind: TransportTestbed.Kind) throws {
        let harness = try TaskHarness(kind)
        let (task, peer) = try harness.opened()
        let recorder = TaskRecorder()
        peer.isReading = false
        harness.perform { task.attach(RecordingConsumer()) }
        // More than the buffers of the kernel and the connection hold.
        let bytes = [UInt8].pattern(16 << 20)
        harness.perform { recorder.write(task, "w", bytes) }
        harness.settle()
        #expect(recorder.lines.isEmpty && task.waitingBytes > 0)
        peer.isReading = true
        #expect(harness.run { peer.received.count == bytes.count && recorder.lines == ["w"] })
        #expect(task.waitingBytes == 0)
        harness.perform { task.reset() }
        harness.finish()
    }

    @Test func writesWaitWhileTheTaskIsSuspended() throws {
        let harness = try TaskHarness(.simulation)
        let (task, peer) = try harness.opened()
        let recorder = TaskRecorder()
        harness.perform {
            task.attach(RecordingConsumer())
            task.suspendOnLoop()
            recorder.write(task, "w", [1, 2, 3])
        }
        harness.settle()
        #expect(recorder.lines.isEmpty && task.waitingBytes == 3 && task.waitingWrites == 1)
        harness.perform { task.resumeOnLoop() }
        #expect(harness.run { recorder.lines == ["w"] && peer.received == [1, 2, 3] })
        harness.perform { task.reset() }
        harness.finish()
    }

    /// A relay above its watermark gets no more data because an operator resumed the task.
    @Test func resumingATaskKeepsThePauseOfItsRelay() throws {
        let harness = try TaskHarness(.simulation)
        let (task, peer) = try harness.opened()
        let relay = RecordingConsumer()
        harness.perform {
            task.attach(relay)
            task.resumeReading()
        }
        peer.send("a")
        #expect(harness.run { task.record.bytesReceived == 1 })
        harness.perform {
            task.pauseReading()
            task.suspendOnLoop()
            task.resumeOnLoop()
        }
        peer.send("b")
        harness.settle()
        #expect(task.record.bytesReceived == 1)
        harness.perform {
            task.suspendOnLoop()
            task.resumeReading()
        }
        harness.settle()
        #expect(task.record.bytesReceived == 1)
        harness.perform { task.resumeOnLoop() }
        #expect(harness.run { task.record.bytesReceived == 2 })
        harness.perform { task.reset() }
        harness.finish()
    }
}
