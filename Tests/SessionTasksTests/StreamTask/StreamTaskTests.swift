import ByteKernels
import SessionTasks
import SimulatedNetwork
import StreamTransport
import TestSupport
import Testing

@Suite("A stream task on a connection, simulated and real")
struct StreamTaskTests {
    @Test(arguments: TaskPlace.all)
    func readsReturnWithinTheirBoundsAndReportTheEnd(_ place: TaskPlace) throws {
        let meeting = try TaskMeeting(place.kind)
        let (task, peer) = try meeting.stream(place.role)
        let diary = TaskDiary()
        meeting.perform {
            diary.read(task, "a", 4, 6)
            diary.read(task, "b", 1, 2)
            diary.read(task, "c", 9, 20)
        }
        peer.send("123")
        meeting.settle()
        #expect(diary.lines.isEmpty)
        peer.send("4567890")
        peer.finish()
        #expect(meeting.run { diary.lines.count == 3 })
        #expect(diary.lines == ["a:123456", "b:78", "c:90."])
        #expect(task.record.bytesReceived == 10)
        meeting.perform { task.cancelOnLoop() }
        meeting.finish()
    }

    @Test(arguments: TaskPlace.all)
    func bytesAreCountedBeforeTheyAreDelivered(_ place: TaskPlace) throws {
        let meeting = try TaskMeeting(place.kind)
        let (task, peer) = try meeting.stream(place.role)
        var counts: [UInt64] = []
        meeting.perform {
            for _ in 0..<3 {
                task.read(minimum: 3, maximum: 3, timeout: nil) { _ in counts.append(task.record.bytesReceived) }
            }
        }
        peer.send("onetwosix")
        #expect(meeting.run { counts.count == 3 })
        #expect(counts == [3, 6, 9])
        meeting.perform { task.cancelOnLoop() }
        meeting.finish()
    }

    @Test(arguments: TaskPlace.all)
    func bytesBeforeTheEndAreReadLater(_ place: TaskPlace) throws {
        let meeting = try TaskMeeting(place.kind)
        let (task, peer) = try meeting.stream(place.role)
        let diary = TaskDiary()
        meeting.perform { diary.read(task, "a", 1, 4) }
        peer.send("abcdefghij")
        peer.finish()
        for name in ["b", "c", "d"] {
            let before = diary.lines.count
            meeting.settle()
            meeting.perform { diary.read(task, name, 1, 4) }
            #expect(meeting.run { diary.lines.count > before })
        }
        #expect(meeting.run { diary.lines.count == 4 })
        #expect(diary.lines[..<2] == ["a:abcd", "b:efgh"])
        #expect(String(decoding: diary.bytes, as: UTF8.self) == "abcdefghij")
        #expect(diary.lines.last?.hasSuffix(".") == true)
        meeting.perform { task.cancelOnLoop() }
        meeting.finish()
    }

    @Test(arguments: TransportTestbed.Kind.allCases)
    func operationsBeforeTheConnectionRunInOrder(_ kind: TransportTestbed.Kind) throws {
        let meeting = try TaskMeeting(kind)
        let task = StreamTask(to: OpeningTarget(.address(meeting.peers.address)), on: meeting.loop)
        let diary = TaskDiary()
        meeting.perform {
            diary.write(task, "one ")
            diary.read(task, "answer", 6, 6)
            diary.write(task, "two")
            #expect(task.record.state == .suspended)
            task.resumeOnLoop()
        }
        #expect(meeting.run { meeting.peers.accepted.first?.received.count == 7 })
        meeting.peers.accepted[0].send("thanks")
        #expect(meeting.run { diary.lines.count == 3 })
        #expect(diary.lines == ["one ", "two", "answer:thanks"])
        meeting.perform { task.cancelOnLoop() }
        meeting.finish()
    }

    @Test(arguments: TaskPlace.all)
    func readTimeoutFailsItsReadAndLaterOnes(_ place: TaskPlace) throws {
        let meeting = try TaskMeeting(place.kind)
        let (task, peer) = try meeting.stream(place.role)
        let diary = TaskDiary()
        meeting.perform {
            diary.read(task, "patient", 1, 9)
            diary.read(task, "hasty", 1, 9, timeout: .milliseconds(20))
            diary.read(task, "behind", 1, 9)
        }
        #expect(meeting.run { diary.lines.count == 2 })
        meeting.perform { diary.read(task, "later", 1, 9) }
        peer.send("x")
        #expect(meeting.run { diary.lines.count == 4 })
        #expect(diary.lines == ["hasty!timed out", "behind!timed out", "later!timed out", "patient:x"])
        #expect(task.record.state == .running)
        meeting.perform { task.cancelOnLoop() }
        meeting.finish()
    }

    @Test(arguments: TransportTestbed.Kind.allCases)
    func deadlinesPassWhileTheConnectionIsStillMissing(_ kind: TransportTestbed.Kind) throws {
        let meeting = try TaskMeeting(kind)
        let task = StreamTask(to: OpeningTarget(.address(meeting.peers.address)), on: meeting.loop)
        let diary = TaskDiary()
        meeting.ground.network?.connectScripts[meeting.peers.address] = .hangs
        if kind == .simulation {
            meeting.perform {
                diary.read(task, "r", 1, 9, timeout: .milliseconds(20))
                diary.write(task, "w", [1], timeout: .milliseconds(30))
                task.resumeOnLoop()
            }
            #expect(meeting.run { diary.lines.count == 2 })
            #expect(diary.lines == ["r!timed out", "w!timed out"])
        }
        meeting.perform { task.cancelOnLoop() }
        meeting.finish()
    }

    @Test(arguments: TaskPlace.all)
    func resetFailsPendingAndLaterOperations(_ place: TaskPlace) throws {
        let meeting = try TaskMeeting(place.kind)
        let (task, peer) = try meeting.stream(place.role)
        let diary = TaskDiary()
        diary.watchEnd(task)
        meeting.perform {
            diary.read(task, "a", 5, 9)
            diary.read(task, "b", 1, 9)
        }
        peer.send("abc")
        meeting.settle()
        peer.reset()
        #expect(meeting.run { diary.lines.count == 2 })
        meeting.perform {
            diary.read(task, "c", 1, 9)
            diary.write(task, "d")
        }
        #expect(diary.lines.map { $0.prefix(2) } == ["a!", "b!", "c!", "d!"])
        if case .connectionLost? = diary.end ?? nil {
        } else {
            Issue.record("ended with \(String(describing: diary.end))")
        }
        #expect(task.record.state == .completed)
        meeting.finish()
    }

    @Test(arguments: TaskPlace.all)
    func unreadBytesOutliveAFailedWrite(_ place: TaskPlace) throws {
        let meeting = try TaskMeeting(place.kind)
        let (task, peer) = try meeting.stream(place.role)
        let diary = TaskDiary()
        diary.watchEnd(task)
        peer.send("unread")
        meeting.settle()
        peer.close()
        meeting.perform { diary.write(task, "one") }
        #expect(meeting.run { diary.lines == ["one"] })
        meeting.settle()
        meeting.perform { diary.write(task, "two") }
        #expect(meeting.run { diary.lines.count == 2 })
        #expect(diary.lines.last?.hasPrefix("two!") == true && diary.end == nil)
        meeting.perform {
            diary.write(task, "three")
            for name in ["r", "s", "t"] { diary.read(task, name, 1, 3) }
        }
        #expect(meeting.run { diary.end != nil })
        #expect(
            diary.lines.dropFirst(2).map { $0.prefix(6) } == ["three!", "r:unr", "s:ead", diary.lines.last?.prefix(6)])
        #expect(diary.lines.last?.hasPrefix("t!") == true)
        if case .connectionLost? = diary.end ?? nil {} else { Issue.record("\(String(describing: diary.end))") }
        meeting.finish()
    }

    @Test(arguments: TaskPlace.all)
    func writeSideClosesAfterQueuedWrites(_ place: TaskPlace) throws {
        let meeting = try TaskMeeting(place.kind)
        let (task, peer) = try meeting.stream(place.role)
        let diary = TaskDiary()
        let bytes = [UInt8].pattern(700_000)
        meeting.perform {
            diary.write(task, "much", bytes)
            task.closeWriteOnLoop()
            diary.write(task, "late")
            diary.read(task, "r", 1, 9)
        }
        #expect(meeting.run { peer.sawEnd })
        #expect(peer.received == bytes)
        #expect(diary.lines == ["much", "late!\(TaskFailure.directionClosed)"])
        peer.send("still")
        #expect(meeting.run { diary.lines.last == "r:still" })
        meeting.perform { task.cancelOnLoop() }
        meeting.finish()
    }

    @Test(arguments: TaskPlace.all)
    func writingContinuesAfterTheReadSideCloses(_ place: TaskPlace) throws {
        let meeting = try TaskMeeting(place.kind)
        let (task, peer) = try meeting.stream(place.role)
        let diary = TaskDiary()
        meeting.perform {
            diary.read(task, "a", 3, 3)
            task.closeReadOnLoop()
            diary.read(task, "b", 1, 9)
        }
        peer.send("abcdef")
        #expect(meeting.run { diary.lines.count == 2 })
        #expect(diary.lines == ["a:abc", "b!\(TaskFailure.directionClosed)"])
        meeting.perform { diary.write(task, "hello") }
        #expect(meeting.run { peer.received == Array("hello".utf8) && diary.lines.last == "hello" })
        meeting.perform { task.cancelOnLoop() }
        meeting.finish()
    }

    @Test(arguments: TaskPlace.all)
    func taskIsCompleteWhenBothDirectionsAreOver(_ place: TaskPlace) throws {
        let meeting = try TaskMeeting(place.kind)
        let (task, peer) = try meeting.stream(place.role)
        let diary = TaskDiary()
        diary.watchEnd(task)
        meeting.perform {
            diary.write(task, "bye")
            task.closeWriteOnLoop()
            diary.read(task, "r", 1, 9)
        }
        #expect(meeting.run { peer.sawEnd })
        #expect(diary.end == nil)
        peer.finish()
        #expect(meeting.run { diary.end != nil })
        #expect(diary.end == .some(nil) && diary.lines == ["bye", "r:."])
        #expect(peer.failure == nil)
        meeting.finish()
    }

    @Test(arguments: TaskPlace.all)
    func aWriteIsDoneOnlyWhenTheKernelTookEveryByte(_ place: TaskPlace) throws {
        let meeting = try TaskMeeting(place.kind)
        let (task, peer) = try meeting.stream(place.role)
        peer.isReading = false
        let diary = TaskDiary()
        let bytes = [UInt8].pattern(place.kind == .sockets ? 16_000_000 : 2_000_000)
        meeting.perform {
            diary.write(task, "much", bytes)
            diary.write(task, "more", [1])
        }
        meeting.settle()
        #expect(diary.lines.isEmpty)
        #expect(task.queuedBytes <= 2 * 256 << 10)
        peer.isReading = true
        #expect(meeting.run { diary.lines == ["much", "more"] })
        #expect(meeting.run { peer.received.count == bytes.count + 1 })
        #expect(Array(peer.received.dropLast()) == bytes)
        meeting.perform { task.cancelOnLoop() }
        meeting.finish()
    }

    @Test(arguments: TaskPlace.all)
    func suspensionStopsReadingAndTimers(_ place: TaskPlace) throws {
        let meeting = try TaskMeeting(place.kind)
        let (task, peer) = try meeting.stream(place.role)
        let diary = TaskDiary()
        meeting.perform {
            diary.read(task, "r", 1, 9, timeout: .seconds(5))
            task.suspendOnLoop()
            task.suspendOnLoop()
        }
        peer.send("hello")
        meeting.settle()
        meeting.perform { task.resumeOnLoop() }
        meeting.settle()
        #expect(diary.lines.isEmpty && task.record.state == .suspended)
        meeting.perform { task.resumeOnLoop() }
        #expect(meeting.run { diary.lines == ["r:hello"] })
        #expect(task.record.state == .running)
        meeting.perform { task.cancelOnLoop() }
        meeting.finish()
    }

    @Test(arguments: TaskRole.allCases)
    func timeInSuspensionIsNotCounted(_ role: TaskRole) throws {
        let meeting = try TaskMeeting(.simulation)
        let (task, peer) = try meeting.stream(role)
        let diary = TaskDiary()
        meeting.perform { diary.read(task, "before", 1, 1, timeout: .seconds(5)) }
        _ = meeting.ground.network?.run(for: .seconds(1))
        meeting.perform {
            task.suspendOnLoop()
            task.suspendOnLoop()
        }
        _ = meeting.ground.network?.run(for: .seconds(60))
        meeting.perform { diary.read(task, "during", 1, 1, timeout: .seconds(6)) }
        _ = meeting.ground.network?.run(for: .seconds(60))
        meeting.perform {
            task.resumeOnLoop()
            task.resumeOnLoop()
        }
        #expect(!meeting.run(atMost: .milliseconds(3900)) { !diary.lines.isEmpty })
        peer.send("x")
        #expect(meeting.run(atMost: .milliseconds(90)) { diary.lines == ["before:x"] })
        #expect(!meeting.run(atMost: .milliseconds(1900)) { diary.lines.count > 1 })
        #expect(meeting.run(atMost: .milliseconds(200)) { diary.lines.last == "during!timed out" })
        meeting.perform { task.cancelOnLoop() }
        meeting.finish()
    }

    @Test func aDeadlineBeginsWhenTheTaskIsFirstResumed() throws {
        let meeting = try TaskMeeting(.simulation)
        let task = StreamTask(to: OpeningTarget(.address(meeting.peers.address)), on: meeting.loop)
        let diary = TaskDiary()
        meeting.perform { diary.read(task, "r", 1, 1, timeout: .seconds(5)) }
        _ = meeting.ground.network?.run(for: .seconds(60))
        meeting.perform { task.resumeOnLoop() }
        #expect(!meeting.run(atMost: .milliseconds(4900)) { !diary.lines.isEmpty })
        #expect(meeting.run(atMost: .milliseconds(200)) { diary.lines == ["r!timed out"] })
        meeting.perform { task.cancelOnLoop() }
        meeting.finish()
    }

    /// The state is that of the call, not of the loop's next turn.
    @Test func cancellingShowsAtOnce() throws {
        let meeting = try TaskMeeting(.simulation)
        let (task, _) = try meeting.opened()
        task.resume()
        task.cancel()
        #expect(task.record.state == .canceling)
        meeting.settle()
        #expect(task.record.state == .completed)
        task.cancel()
        #expect(task.record.state == .completed)
        meeting.finish()
    }

    @Test func noDeadlinePassesWhileSuspended() throws {
        let meeting = try TaskMeeting(.simulation)
        let (task, peer) = try meeting.accepted()
        let diary = TaskDiary()
        meeting.perform {
            diary.read(task, "r", 1, 9, timeout: .seconds(5))
            task.suspendOnLoop()
        }
        _ = meeting.ground.network?.run(for: .seconds(4))
        #expect(diary.lines.isEmpty)
        peer.send("x")
        meeting.settle()
        meeting.perform { task.resumeOnLoop() }
        #expect(meeting.run { diary.lines == ["r:x"] })
        meeting.perform { task.cancelOnLoop() }
        meeting.finish()
    }

    @Test(arguments: TaskPlace.all)
    func cancelFailsAllOperationsAndResetsTheConnection(_ place: TaskPlace) throws {
        let meeting = try TaskMeeting(place.kind)
        let (task, peer) = try meeting.stream(place.role)
        peer.isReading = false
        let diary = TaskDiary()
        diary.watchEnd(task)
        meeting.perform {
            diary.read(task, "r", 1, 9)
            diary.write(task, "w", .pattern(16_000_000))
            diary.write(task, "x", [1])
            task.captureStreams { result in
                if case .failure(let failure) = result { diary.note("capture", .failure(failure)) }
            }
            diary.read(task, "s", 1, 9)
            task.cancelOnLoop()
        }
        #expect(
            diary.lines.sorted() == ["capture!cancelled", "r!cancelled", "s!cancelled", "w!cancelled", "x!cancelled"])
        #expect(diary.end == .some(.cancelled))
        peer.isReading = true
        #expect(meeting.run { peer.failure == .reset || peer.isClosed })
        #expect(peer.failure == .reset && !peer.sawEnd)
        meeting.finish()
    }

    @Test(arguments: TaskPlace.all)
    func connectionIsHandedOverAfterQueuedOperations(_ place: TaskPlace) throws {
        let meeting = try TaskMeeting(place.kind)
        let (task, peer) = try meeting.stream(place.role)
        let diary = TaskDiary()
        diary.watchEnd(task)
        let consumer = RecordingConsumer()
        var captured: CapturedStreams?
        meeting.perform {
            diary.read(task, "a", 3, 3)
            diary.write(task, "first ")
            task.captureStreams { captured = try? $0.get() }
            diary.read(task, "b", 1, 9)
        }
        meeting.settle()
        #expect(captured == nil)
        peer.send("abcdef")
        #expect(meeting.run { captured != nil })
        #expect(diary.lines == ["first ", "a:abc", "b!\(TaskFailure.ended)"])
        #expect(diary.end == .some(nil) && task.record.state == .completed)
        let streams = try #require(captured)
        meeting.perform {
            streams.transport.consumer = consumer
            streams.transport.resumeReading()
            Array("second".utf8).withRawSpan { streams.transport.write($0) }
        }
        #expect(meeting.run { peer.received == Array("first second".utf8) && consumer.received.count == 3 })
        #expect(streams.unread + consumer.received == Array("def".utf8))
        meeting.perform { streams.transport.reset() }
        meeting.finish()
    }
}
