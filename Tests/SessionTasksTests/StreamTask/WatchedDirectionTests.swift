import ByteKernels
import SessionTasks
import StreamTransport
import TestSupport
import Testing

@Suite("Stream tasks whose directions are watched")
struct WatchedDirectionTests {
    private final class DirectionRecord {
        var lines: [String] = []

        func watch(_ task: StreamTask, readAhead: Int = 1000) {
            task.watchDirections(
                readAhead: readAhead, inputClosed: { self.lines.append("input") },
                outputClosed: { self.lines.append("output") })
        }
    }

    @Test(arguments: TaskPlace.all)
    func endOfInputIsReportedWithoutARead(_ place: TaskPlace) throws {
        let meeting = try TaskMeeting(place.kind)
        let (task, peer) = try meeting.stream(place.role)
        let (record, diary) = (DirectionRecord(), TaskDiary())
        diary.watchEnd(task)
        meeting.perform { record.watch(task) }
        peer.send("unread")
        peer.finish()
        #expect(meeting.run { record.lines == ["input"] })
        #expect(diary.end == nil)
        meeting.perform {
            diary.read(task, "r", 1, 3)
            diary.read(task, "s", 10, 10)
            task.closeWriteOnLoop()
        }
        #expect(meeting.run { diary.end != nil })
        #expect(diary.lines == ["r:unr", "s:ead."] && record.lines == ["input", "output"] && diary.end == .some(nil))
        meeting.finish()
    }

    @Test(arguments: TransportTestbed.Kind.allCases)
    func taskReadsNoFurtherAheadThanItsLimit(_ kind: TransportTestbed.Kind) throws {
        let meeting = try TaskMeeting(kind)
        let (task, peer) = try meeting.opened()
        let (record, diary) = (DirectionRecord(), TaskDiary())
        meeting.perform { record.watch(task, readAhead: 1000) }
        let bytes = [UInt8].pattern(100_000)
        peer.send(bytes)
        meeting.settle()
        #expect(task.record.bytesReceived == 1000)
        peer.finish()
        meeting.settle()
        #expect(record.lines.isEmpty)
        var isDone = false
        meeting.perform { diary.readAll(task) { isDone = true } }
        #expect(meeting.run { isDone })
        #expect(diary.bytes == bytes && record.lines == ["input"])
        meeting.perform { task.cancelOnLoop() }
        meeting.finish()
    }

    @Test(arguments: TransportTestbed.Kind.allCases)
    func bytesReadAheadAreDelivered(_ kind: TransportTestbed.Kind) throws {
        let meeting = try TaskMeeting(kind)
        let (task, peer) = try meeting.opened()
        let record = DirectionRecord()
        meeting.perform { record.watch(task) }
        peer.send("ahead")
        #expect(meeting.run { task.record.bytesReceived == 5 })
        var captured: CapturedStreams?
        meeting.perform { task.captureStreams { captured = try? $0.get() } }
        #expect(meeting.run { captured != nil })
        #expect(captured?.unread == Array("ahead".utf8) && captured?.inputClosed == false)
        meeting.perform { captured?.transport.reset() }
        meeting.finish()
    }

    @Test func connectionFailureIsReportedWithoutARead() throws {
        let meeting = try TaskMeeting(.simulation)
        let (task, peer) = try meeting.opened()
        let (record, diary) = (DirectionRecord(), TaskDiary())
        diary.watchEnd(task)
        meeting.perform { record.watch(task) }
        peer.reset()
        #expect(meeting.run { diary.end != nil })
        if case .connectionLost? = diary.end ?? nil {} else { Issue.record("\(String(describing: diary.end))") }
        #expect(record.lines.isEmpty)
        meeting.finish()
    }

    /// - Parameter finishes: the peer ends its output before it resets.
    @Test(arguments: TaskPlace.all, [false, true])
    func bytesReadAheadAreDeliveredAfterAReset(_ place: TaskPlace, _ finishes: Bool) throws {
        let meeting = try TaskMeeting(place.kind)
        let (task, peer) = try meeting.stream(place.role)
        let (record, diary) = (DirectionRecord(), TaskDiary())
        diary.watchEnd(task)
        meeting.perform { record.watch(task) }
        peer.send("unread")
        if finishes { peer.finish() }
        #expect(meeting.run { task.record.bytesReceived == 6 && record.lines == (finishes ? ["input"] : []) })
        peer.reset()
        #expect(meeting.run { diary.end != nil })
        meeting.perform {
            for name in ["r", "s", "t"] { diary.read(task, name, 1, 3) }
            diary.write(task, "w")
        }
        #expect(diary.lines.count == 4 && diary.lines[..<2] == ["r:unr", finishes ? "s:ead." : "s:ead"])
        #expect(diary.lines.suffix(2).map { $0.prefix(2) } == ["t!", "w!"])
        if case .connectionLost? = diary.end ?? nil {} else { Issue.record("\(String(describing: diary.end))") }
        meeting.finish()
    }

    @Test(arguments: TaskPlace.all)
    func readsOfASuspendedTaskGetBytesReadAheadBeforeTheReset(_ place: TaskPlace) throws {
        let meeting = try TaskMeeting(place.kind)
        let (task, peer) = try meeting.stream(place.role)
        let (record, diary) = (DirectionRecord(), TaskDiary())
        diary.watchEnd(task)
        meeting.perform { record.watch(task) }
        peer.send("unread")
        #expect(meeting.run { task.record.bytesReceived == 6 })
        meeting.perform {
            task.suspendOnLoop()
            for name in ["r", "s", "t"] { diary.read(task, name, 1, 3) }
        }
        #expect(diary.lines.isEmpty)
        peer.reset()
        #expect(meeting.run { diary.end != nil })
        #expect(diary.lines.count == 3 && diary.lines[..<2] == ["r:unr", "s:ead"])
        #expect(diary.lines.last?.hasPrefix("t!") == true)
        meeting.finish()
    }

    @Test func closingTheReadSideIsReported() throws {
        let meeting = try TaskMeeting(.simulation)
        let (task, peer) = try meeting.opened()
        let (record, diary) = (DirectionRecord(), TaskDiary())
        meeting.perform {
            record.watch(task)
            diary.read(task, "r", 2, 2)
            task.closeReadOnLoop()
        }
        meeting.settle()
        #expect(record.lines.isEmpty)
        peer.send("ab")
        #expect(meeting.run { record.lines == ["input"] && diary.lines == ["r:ab"] })
        meeting.perform { task.cancelOnLoop() }
        meeting.finish()
    }
}
