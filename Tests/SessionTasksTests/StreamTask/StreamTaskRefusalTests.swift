import SessionTasks
import StreamTransport
import TestSupport
import Testing

@Suite("Refused operations of stream tasks")
struct StreamTaskRefusalTests {
    @Test func invalidArgumentsAreUsageErrors() throws {
        let meeting = try TaskMeeting(.simulation)
        let (task, _) = try meeting.accepted()
        let diary = TaskDiary()
        meeting.perform {
            diary.read(task, "none", 0, 0)
            diary.read(task, "crossed", 3, 2)
            diary.read(task, "negative", -1, 2)
        }
        #expect(diary.lines.count == 3 && diary.lines.allSatisfy { $0.contains("minimum") })
        meeting.perform { task.cancelOnLoop() }
        meeting.finish()
    }

    @Test func failedConnectHasItsReason() throws {
        let meeting = try TaskMeeting(.simulation)
        let nowhere = SocketAddress.ipv4(address: 0x7f00_0001, port: 9)
        let task = StreamTask(to: OpeningTarget(.address(nowhere)), on: meeting.loop)
        let diary = TaskDiary()
        diary.watchEnd(task)
        meeting.perform {
            diary.read(task, "r", 1, 9)
            task.resumeOnLoop()
        }
        #expect(meeting.run { diary.end != nil })
        if case .cannotConnect? = diary.end ?? nil {
        } else {
            Issue.record("ended with \(String(describing: diary.end))")
        }
        #expect(!task.record.isConnected)
        meeting.finish()
    }
}
