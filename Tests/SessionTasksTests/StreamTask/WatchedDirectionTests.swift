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

    @Test(arguments: TaskVariant.all)
    func endOfInputIsReportedWithoutARead(_ variant: TaskVariant) throws {
        let harness = try TaskHarness(variant.kind)
        let (task, peer) = try harness.stream(variant.role)
        let (record, recorder) = (DirectionRecord(), TaskRecorder())
        recorder.watchEnd(task)
        harness.perform { record.watch(task) }
        peer.send("unread")
        peer.finish()
        #expect(harness.run { record.lines == ["input"] })
        #expect(recorder.end == nil)
        harness.perform {
            recorder.read(task, "r", 1, 3)
            recorder.read(task, "s", 10, 10)
            task.closeWriteOnLoop()
        }
        #expect(harness.run { recorder.end != nil })
        #expect(
            recorder.lines == ["r:unr", "s:ead."] && record.lines == ["input", "output"] && recorder.end == .some(nil))
        harness.finish()
    }

    @Test(arguments: TransportTestbed.Kind.allCases)
    func taskReadsNoFurtherAheadThanItsLimit(_ kind: TransportTestbed.Kind) throws {
        let harness = try TaskHarness(kind)
        let (task, peer) = try harness.opened()
        let (record, recorder) = (DirectionRecord(), TaskRecorder())
        harness.perform { record.watch(task, readAhead: 1000) }
        let bytes = [UInt8].pattern(100_000)
        peer.send(bytes)
        harness.settle()
        #expect(task.record.bytesReceived == 1000)
        peer.finish()
        harness.settle()
        #expect(record.lines.isEmpty)
        var isDone = false
        harness.perform { recorder.readAll(task) { isDone = true } }
        #expect(harness.run { isDone })
        #expect(recorder.bytes == bytes && record.lines == ["input"])
        harness.perform { task.cancelOnLoop() }
        harness.finish()
    }

    @Test(arguments: TransportTestbed.Kind.allCases)
    func bytesReadAheadAreDelivered(_ kind: TransportTestbed.Kind) throws {
        let harness = try TaskHarness(kind)
        let (task, peer) = try harness.opened()
        let record = DirectionRecord()
        harness.perform { record.watch(task) }
        peer.send("ahead")
        #expect(harness.run { task.record.bytesReceived == 5 })
        var captured: CapturedStreams?
        harness.perform { task.captureStreams { captured = try? $0.get() } }
        #expect(harness.run { captured != nil })
        #expect(captured?.unread == Array("ahead".utf8) && captured?.inputClosed == false)
        harness.perform { captured?.transport.reset() }
        harness.finish()
    }

    @Test func connectionFailureIsReportedWithoutARead() throws {
        let harness = try TaskHarness(.simulation)
        let (task, peer) = try harness.opened()
        let (record, recorder) = (DirectionRecord(), TaskRecorder())
        recorder.watchEnd(task)
        harness.perform { record.watch(task) }
        peer.reset()
        #expect(harness.run { recorder.end != nil })
        if case .connectionLost? = recorder.end ?? nil {} else { Issue.record("\(String(describing: recorder.end))") }
        #expect(record.lines.isEmpty)
        harness.finish()
    }

    /// - Parameter finishes: the peer ends its output before it resets.
    @Test(arguments: TaskVariant.all, [false, true])
    func bytesReadAheadAreDeliveredAfterAReset(_ variant: TaskVariant, _ finishes: Bool) throws {
        let harness = try TaskHarness(variant.kind)
        let (task, peer) = try harness.stream(variant.role)
        let (record, recorder) = (DirectionRecord(), TaskRecorder())
        recorder.watchEnd(task)
        harness.perform { record.watch(task) }
        peer.send("unread")
        if finishes { peer.finish() }
        #expect(harness.run { task.record.bytesReceived == 6 && record.lines == (finishes ? ["input"] : []) })
        peer.reset()
        #expect(harness.run { recorder.end != nil })
        harness.perform {
            for name in ["r", "s", "t"] { recorder.read(task, name, 1, 3) }
            recorder.write(task, "w")
        }
        #expect(recorder.lines.count == 4 && recorder.lines[..<2] == ["r:unr", finishes ? "s:ead." : "s:ead"])
        #expect(recorder.lines.suffix(2).map { $0.prefix(2) } == ["t!", "w!"])
        if case .connectionLost? = recorder.end ?? nil {} else { Issue.record("\(String(describing: recorder.end))") }
        harness.finish()
    }

    @Test(arguments: TaskVariant.all)
    func readsOfASuspendedTaskGetBytesReadAheadBeforeTheReset(_ variant: TaskVariant) throws {
        let harness = try TaskHarness(variant.kind)
        let (task, peer) = try harness.stream(variant.role)
        let (record, recorder) = (DirectionRecord(), TaskRecorder())
        recorder.watchEnd(task)
        harness.perform { record.watch(task) }
        peer.send("unread")
        #expect(harness.run { task.record.bytesReceived == 6 })
        harness.perform {
            task.suspendOnLoop()
            for name in ["r", "s", "t"] { recorder.read(task, name, 1, 3) }
        }
        #expect(recorder.lines.isEmpty)
        peer.reset()
        #expect(harness.run { recorder.end != nil })
        #expect(recorder.lines.count == 3 && recorder.lines[..<2] == ["r:unr", "s:ead"])
        #expect(recorder.lines.last?.hasPrefix("t!") == true)
        harness.finish()
    }

    @Test func closingTheReadSideIsReported() throws {
        let harness = try TaskHarness(.simulation)
        let (task, peer) = try harness.opened()
        let (record, recorder) = (DirectionRecord(), TaskRecorder())
        harness.perform {
            record.watch(task)
            recorder.read(task, "r", 2, 2)
            task.closeReadOnLoop()
        }
        harness.settle()
        #expect(record.lines.isEmpty)
        peer.send("ab")
        #expect(harness.run { record.lines == ["input"] && recorder.lines == ["r:ab"] })
        harness.perform { task.cancelOnLoop() }
        harness.finish()
    }
}
