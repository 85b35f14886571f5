import SessionTasks
import StreamTransport
import TestSupport
import Testing

@Suite("Writes to a stream task beside its relay")
struct RelayedWritesTests {
    @Test(arguments: TransportTestbed.Kind.allCases)
    func writesContinueWhenThePeerReads(_ kind: TransportTestbed.Kind) throws {
        let meeting = try TaskMeeting(kind)
        let (task, peer) = try meeting.opened()
        let diary = TaskDiary()
        peer.isReading = false
        meeting.perform { task.attach(RecordingConsumer()) }
        // More than the buffers of the kernel and the connection hold.
        let bytes = [UInt8].pattern(16 << 20)
        meeting.perform { diary.write(task, "w", bytes) }
        meeting.settle()
        #expect(diary.lines.isEmpty && task.waitingBytes > 0)
        peer.isReading = true
        #expect(meeting.run { peer.received.count == bytes.count && diary.lines == ["w"] })
        #expect(task.waitingBytes == 0)
        meeting.perform { task.reset() }
        meeting.finish()
    }

    @Test func writesWaitWhileTheTaskIsSuspended() throws {
        let meeting = try TaskMeeting(.simulation)
        let (task, peer) = try meeting.opened()
        let diary = TaskDiary()
        meeting.perform {
            task.attach(RecordingConsumer())
            task.suspendOnLoop()
            diary.write(task, "w", [1, 2, 3])
        }
        meeting.settle()
        #expect(diary.lines.isEmpty && task.waitingBytes == 3 && task.waitingWrites == 1)
        meeting.perform { task.resumeOnLoop() }
        #expect(meeting.run { diary.lines == ["w"] && peer.received == [1, 2, 3] })
        meeting.perform { task.reset() }
        meeting.finish()
    }

    /// A relay above its watermark gets no more data because an operator resumed the task.
    @Test func resumingATaskKeepsThePauseOfItsRelay() throws {
        let meeting = try TaskMeeting(.simulation)
        let (task, peer) = try meeting.opened()
        let relay = RecordingConsumer()
        meeting.perform {
            task.attach(relay)
            task.resumeReading()
        }
        peer.send("a")
        #expect(meeting.run { task.record.bytesReceived == 1 })
        meeting.perform {
            task.pauseReading()
            task.suspendOnLoop()
            task.resumeOnLoop()
        }
        peer.send("b")
        meeting.settle()
        #expect(task.record.bytesReceived == 1)
        meeting.perform {
            task.suspendOnLoop()
            task.resumeReading()
        }
        meeting.settle()
        #expect(task.record.bytesReceived == 1)
        meeting.perform { task.resumeOnLoop() }
        #expect(meeting.run { task.record.bytesReceived == 2 })
        meeting.perform { task.reset() }
        meeting.finish()
    }
}
