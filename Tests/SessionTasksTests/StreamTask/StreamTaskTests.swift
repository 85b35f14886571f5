import ByteKernels
import SessionTasks
import SimulatedNetwork
import StreamTransport
import TestSupport
import Testing

@Suite("A stream task on a connection, simulated and real")
struct StreamTaskTests {
    @Test(arguments: TaskVariant.all)
    func readsReturnWithinTheirBoundsAndReportTheEnd(_ variant: TaskVariant) throws {
        let harness = try TaskHarness(variant.kind)
        let (task, peer) = try harness.stream(variant.role)
        let recorder = TaskRecorder()
        harness.perform {
            recorder.read(task, "a", 4, 6)
            recorder.read(task, "b", 1, 2)
            recorder.read(task, "c", 9, 20)
        }
        peer.send("123")
        harness.settle()
        #expect(recorder.lines.isEmpty)
        peer.send("4567890")
        peer.finish()
        #expect(harness.run { recorder.lines.count == 3 })
        #expect(recorder.lines == ["a:123456", "b:78", "c:90."])
        #expect(task.record.bytesReceived == 10)
        harness.perform { task.cancelOnLoop() }
        harness.finish()
    }

    @Test(arguments: TaskVariant.all)
    func bytesAreCountedBeforeTheyAreDelivered(_ variant: TaskVariant) throws {
        let harness = try TaskHarness(variant.kind)
        let (task, peer) = try harness.stream(variant.role)
        var counts: [UInt64] = []
        harness.perform {
            for _ in 0..<3 {
                task.read(minimum: 3, maximum: 3, timeout: nil) { _ in counts.append(task.record.bytesReceived) }
            }
        }
        peer.send("onetwosix")
        #expect(harness.run { counts.count == 3 })
        #expect(counts == [3, 6, 9])
        harness.perform { task.cancelOnLoop() }
        harness.finish()
    }

    @Test(arguments: TaskVariant.all)
    func bytesBeforeTheEndAreReadLater(_ variant: TaskVariant) throws {
        let harness = try TaskHarness(variant.kind)
        let (task, peer) = try harness.stream(variant.role)
        let recorder = TaskRecorder()
        harness.perform { recorder.read(task, "a", 1, 4) }
        peer.send("abcdefghij")
        peer.finish()
        for name in ["b", "c", "d"] {
            let before = recorder.lines.count
            harness.settle()
            harness.perform { recorder.read(task, name, 1, 4) }
            #expect(harness.run { recorder.lines.count > before })
        }
        #expect(harness.run { recorder.lines.count == 4 })
        #expect(recorder.lines[..<2] == ["a:abcd", "b:efgh"])
        #expect(String(decoding: recorder.bytes, as: UTF8.self) == "abcdefghij")
        #expect(recorder.lines.last?.hasSuffix(".") == true)
        harness.perform { task.cancelOnLoop() }
        harness.finish()
    }

    @Test(arguments: TransportTestbed.Kind.allCases)
    func operationsBeforeTheConnectionRunInOrder(_ kind: TransportTestbed.Kind) throws {
        let harness = try TaskHarness(kind)
        let task = StreamTask(to: OpeningTarget(.address(harness.peers.address)), on: harness.loop)
        let recorder = TaskRecorder()
        harness.perform {
            recorder.write(task, "one ")
            recorder.read(task, "answer", 6, 6)
            recorder.write(task, "two")
            #expect(task.record.state == .suspended)
            task.resumeOnLoop()
        }
        #expect(harness.run { harness.peers.accepted.first?.received.count == 7 })
        harness.peers.accepted[0].send("thanks")
        #expect(harness.run { recorder.lines.count == 3 })
        #expect(recorder.lines == ["one ", "two", "answer:thanks"])
        harness.perform { task.cancelOnLoop() }
        harness.finish()
    }

    @Test(arguments: TaskVariant.all)
    func readTimeoutFailsItsReadAndLaterOnes(_ variant: TaskVariant) throws {
        let harness = try TaskHarness(variant.kind)
        let (task, peer) = try harness.stream(variant.role)
        let recorder = TaskRecorder()
        harness.perform {
            recorder.read(task, "patient", 1, 9)
            recorder.read(task, "hasty", 1, 9, timeout: .milliseconds(20))
            recorder.read(task, "behind", 1, 9)
        }
        #expect(harness.run { recorder.lines.count == 2 })
        harness.perform { recorder.read(task, "later", 1, 9) }
        peer.send("x")
        #expect(harness.run { recorder.lines.count == 4 })
        #expect(recorder.lines == ["hasty!timed out", "behind!timed out", "later!timed out", "patient:x"])
        #expect(task.record.state == .running)
        harness.perform { task.cancelOnLoop() }
        harness.finish()
    }

    @Test(arguments: TransportTestbed.Kind.allCases)
    func deadlinesPassWhileTheConnectionIsStillMissing(_ kind: TransportTestbed.Kind) throws {
        let harness = try TaskHarness(kind)
        let task = StreamTask(to: OpeningTarget(.address(harness.peers.address)), on: harness.loop)
        let recorder = TaskRecorder()
        harness.testbed.network?.connectScripts[harness.peers.address] = .hangs
        if kind == .simulation {
            harness.perform {
                recorder.read(task, "r", 1, 9, timeout: .milliseconds(20))
                recorder.write(task, "w", [1], timeout: .milliseconds(30))
                task.resumeOnLoop()
            }
            #expect(harness.run { recorder.lines.count == 2 })
            #expect(recorder.lines == ["r!timed out", "w!timed out"])
        }
        harness.perform { task.cancelOnLoop() }
        harness.finish()
    }

    @Test(arguments: TaskVariant.all)
    func resetFailsPendingAndLaterOperations(_ variant: TaskVariant) throws {
        let harness = try TaskHarness(variant.kind)
        let (task, peer) = try harness.stream(variant.role)
        let recorder = TaskRecorder()
        recorder.watchEnd(task)
        harness.perform {
            recorder.read(task, "a", 5, 9)
            recorder.read(task, "b", 1, 9)
        }
        peer.send("abc")
        harness.settle()
        peer.reset()
        #expect(harness.run { recorder.lines.count == 2 })
        harness.perform {
            recorder.read(task, "c", 1, 9)
            recorder.write(task, "d")
        }
        #expect(recorder.lines.map { $0.prefix(2) } == ["a!", "b!", "c!", "d!"])
        if case .connectionLost? = recorder.end ?? nil {
        } else {
            Issue.record("ended with \(String(describing: recorder.end))")
        }
        #expect(task.record.state == .completed)
        harness.finish()
    }

    @Test(arguments: TaskVariant.all)
    func unreadBytesOutliveAFailedWrite(_ variant: TaskVariant) throws {
        let harness = try TaskHarness(variant.kind)
        let (task, peer) = try harness.stream(variant.role)
        let recorder = TaskRecorder()
        recorder.watchEnd(task)
        peer.send("unread")
        harness.settle()
        peer.close()
        harness.perform { recorder.write(task, "one") }
        #expect(harness.run { recorder.lines == ["one"] })
        harness.settle()
        harness.perform { recorder.write(task, "two") }
        #expect(harness.run { recorder.lines.count == 2 })
        #expect(recorder.lines.last?.hasPrefix("two!") == true && recorder.end == nil)
        harness.perform {
            recorder.write(task, "three")
            for name in ["r", "s", "t"] { recorder.read(task, name, 1, 3) }
        }
        #expect(harness.run { recorder.end != nil })
        #expect(
            recorder.lines.dropFirst(2).map { $0.prefix(6) } == [
                "three!", "r:unr", "s:ead", recorder.lines.last?.prefix(6),
            ])
        #expect(recorder.lines.last?.hasPrefix("t!") == true)
        if case .connectionLost? = recorder.end ?? nil {} else { Issue.record("\(String(describing: recorder.end))") }
        harness.finish()
    }

    @Test(arguments: TaskVariant.all)
    func writeSideClosesAfterQueuedWrites(_ variant: TaskVariant) throws {
        let harness = try TaskHarness(variant.kind)
        let (task, peer) = try harness.stream(variant.role)
        let recorder = TaskRecorder()
        let bytes = [UInt8].pattern(700_000)
        harness.perform {
            recorder.write(task, "much", bytes)
            task.closeWriteOnLoop()
            recorder.write(task, "late")
            recorder.read(task, "r", 1, 9)
        }
        #expect(harness.run { peer.sawEnd })
        #expect(peer.received == bytes)
        #expect(recorder.lines == ["much", "late!\(TaskFailure.directionClosed)"])
        peer.send("still")
        #expect(harness.run { recorder.lines.last == "r:still" })
        harness.perform { task.cancelOnLoop() }
        harness.finish()
    }

    @Test(arguments: TaskVariant.all)
    func writingContinuesAfterTheReadSideCloses(_ variant: TaskVariant) throws {
        let harness = try TaskHarness(variant.kind)
        let (task, peer) = try harness.stream(variant.role)
        let recorder = TaskRecorder()
        harness.perform {
            recorder.read(task, "a", 3, 3)
            task.closeReadOnLoop()
            recorder.read(task, "b", 1, 9)
        }
        peer.send("abcdef")
        #expect(harness.run { recorder.lines.count == 2 })
        #expect(recorder.lines == ["a:abc", "b!\(TaskFailure.directionClosed)"])
        harness.perform { recorder.write(task, "hello") }
        #expect(harness.run { peer.received == Array("hello".utf8) && recorder.lines.last == "hello" })
        harness.perform { task.cancelOnLoop() }
        harness.finish()
    }

    @Test(arguments: TaskVariant.all)
    func taskIsCompleteWhenBothDirectionsAreOver(_ variant: TaskVariant) throws {
        let harness = try TaskHarness(variant.kind)
        let (task, peer) = try harness.stream(variant.role)
        let recorder = TaskRecorder()
        recorder.watchEnd(task)
        harness.perform {
            recorder.write(task, "bye")
            task.closeWriteOnLoop()
            recorder.read(task, "r", 1, 9)
        }
        #expect(harness.run { peer.sawEnd })
        #expect(recorder.end == nil)
        peer.finish()
        #expect(harness.run { recorder.end != nil })
        #expect(recorder.end == .some(nil) && recorder.lines == ["bye", "r:."])
        #expect(peer.failure == nil)
        harness.finish()
    }

    @Test(arguments: TaskVariant.all)
    func aWriteIsDoneOnlyWhenTheKernelTookEveryByte(_ variant: TaskVariant) throws {
        let harness = try TaskHarness(variant.kind)
        let (task, peer) = try harness.stream(variant.role)
        peer.isReading = false
        let recorder = TaskRecorder()
        let bytes = [UInt8].pattern(variant.kind == .sockets ? 16_000_000 : 2_000_000)
        harness.perform {
            recorder.write(task, "much", bytes)
            recorder.write(task, "more", [1])
        }
        harness.settle()
        #expect(recorder.lines.isEmpty)
        #expect(task.queuedBytes <= 2 * 256 << 10)
        peer.isReading = true
        #expect(harness.run { recorder.lines == ["much", "more"] })
        #expect(harness.run { peer.received.count == bytes.count + 1 })
        #expect(Array(peer.received.dropLast()) == bytes)
        harness.perform { task.cancelOnLoop() }
        harness.finish()
    }

    @Test(arguments: TaskVariant.all)
    func suspensionStopsReadingAndTimers(_ variant: TaskVariant) throws {
        let harness = try TaskHarness(variant.kind)
        let (task, peer) = try harness.stream(variant.role)
        let recorder = TaskRecorder()
        harness.perform {
            recorder.read(task, "r", 1, 9, timeout: .seconds(5))
            task.suspendOnLoop()
            task.suspendOnLoop()
        }
        peer.send("hello")
        harness.settle()
        harness.perform { task.resumeOnLoop() }
        harness.settle()
        #expect(recorder.lines.isEmpty && task.record.state == .suspended)
        harness.perform { task.resumeOnLoop() }
        #expect(harness.run { recorder.lines == ["r:hello"] })
        #expect(task.record.state == .running)
        harness.perform { task.cancelOnLoop() }
        harness.finish()
    }

    @Test(arguments: TaskRole.allCases)
    func timeInSuspensionIsNotCounted(_ role: TaskRole) throws {
        let harness = try TaskHarness(.simulation)
        let (task, peer) = try harness.stream(role)
        let recorder = TaskRecorder()
        harness.perform { recorder.read(task, "before", 1, 1, timeout: .seconds(5)) }
        _ = harness.testbed.network?.run(for: .seconds(1))
        harness.perform {
            task.suspendOnLoop()
            task.suspendOnLoop()
        }
        _ = harness.testbed.network?.run(for: .seconds(60))
        harness.perform { recorder.read(task, "during", 1, 1, timeout: .seconds(6)) }
        _ = harness.testbed.network?.run(for: .seconds(60))
        harness.perform {
            task.resumeOnLoop()
            task.resumeOnLoop()
        }
        #expect(!harness.run(atMost: .milliseconds(3900)) { !recorder.lines.isEmpty })
        peer.send("x")
        #expect(harness.run(atMost: .milliseconds(90)) { recorder.lines == ["before:x"] })
        #expect(!harness.run(atMost: .milliseconds(1900)) { recorder.lines.count > 1 })
        #expect(harness.run(atMost: .milliseconds(200)) { recorder.lines.last == "during!timed out" })
        harness.perform { task.cancelOnLoop() }
        harness.finish()
    }

    @Test func aDeadlineBeginsWhenTheTaskIsFirstResumed() throws {
        let harness = try TaskHarness(.simulation)
        let task = StreamTask(to: OpeningTarget(.address(harness.peers.address)), on: harness.loop)
        let recorder = TaskRecorder()
        harness.perform { recorder.read(task, "r", 1, 1, timeout: .seconds(5)) }
        _ = harness.testbed.network?.run(for: .seconds(60))
        harness.perform { task.resumeOnLoop() }
        #expect(!harness.run(atMost: .milliseconds(4900)) { !recorder.lines.isEmpty })
        #expect(harness.run(atMost: .milliseconds(200)) { recorder.lines == ["r!timed out"] })
        harness.perform { task.cancelOnLoop() }
        harness.finish()
    }

    /// The state is that of the call, not of the loop's next turn.
    @Test func cancellingShowsAtOnce() throws {
        let harness = try TaskHarness(.simulation)
        let (task, _) = try harness.opened()
        task.resume()
        task.cancel()
        #expect(task.record.state == .canceling)
        harness.settle()
        #expect(task.record.state == .completed)
        task.cancel()
        #expect(task.record.state == .completed)
        harness.finish()
    }

    @Test func noDeadlinePassesWhileSuspended() throws {
        let harness = try TaskHarness(.simulation)
        let (task, peer) = try harness.accepted()
        let recorder = TaskRecorder()
        harness.perform {
            recorder.read(task, "r", 1, 9, timeout: .seconds(5))
            task.suspendOnLoop()
        }
        _ = harness.testbed.network?.run(for: .seconds(4))
        #expect(recorder.lines.isEmpty)
        peer.send("x")
        harness.settle()
        harness.perform { task.resumeOnLoop() }
        #expect(harness.run { recorder.lines == ["r:x"] })
        harness.perform { task.cancelOnLoop() }
        harness.finish()
    }

    @Test(arguments: TaskVariant.all)
    func cancelFailsAllOperationsAndResetsTheConnection(_ variant: TaskVariant) throws {
        let harness = try TaskHarness(variant.kind)
        let (task, peer) = try harness.stream(variant.role)
        peer.isReading = false
        let recorder = TaskRecorder()
        recorder.watchEnd(task)
        harness.perform {
            recorder.read(task, "r", 1, 9)
            recorder.write(task, "w", .pattern(16_000_000))
            recorder.write(task, "x", [1])
            task.captureStreams { result in
                if case .failure(let failure) = result { recorder.note("capture", .failure(failure)) }
            }
            recorder.read(task, "s", 1, 9)
            task.cancelOnLoop()
        }
        #expect(
            recorder.lines.sorted() == [
                "capture!cancelled", "r!cancelled", "s!cancelled", "w!cancelled", "x!cancelled",
            ])
        #expect(recorder.end == .some(.cancelled))
        peer.isReading = true
        #expect(harness.run { peer.failure == .reset || peer.isClosed })
        #expect(peer.failure == .reset && !peer.sawEnd)
        harness.finish()
    }

    @Test(arguments: TaskVariant.all)
    func connectionIsHandedOverAfterQueuedOperations(_ variant: TaskVariant) throws {
        let harness = try TaskHarness(variant.kind)
        let (task, peer) = try harness.stream(variant.role)
        let recorder = TaskRecorder()
        recorder.watchEnd(task)
        let consumer = RecordingConsumer()
        var captured: CapturedStreams?
        harness.perform {
            recorder.read(task, "a", 3, 3)
            recorder.write(task, "first ")
            task.captureStreams { captured = try? $0.get() }
            recorder.read(task, "b", 1, 9)
        }
        harness.settle()
        #expect(captured == nil)
        peer.send("abcdef")
        #expect(harness.run { captured != nil })
        #expect(recorder.lines == ["first ", "a:abc", "b!\(TaskFailure.ended)"])
        #expect(recorder.end == .some(nil) && task.record.state == .completed)
        let streams = try #require(captured)
        harness.perform {
            streams.transport.consumer = consumer
            streams.transport.resumeReading()
            Array("second".utf8).withRawSpan { streams.transport.write($0) }
        }
        #expect(harness.run { peer.received == Array("first second".utf8) && consumer.received.count == 3 })
        #expect(streams.unread + consumer.received == Array("def".utf8))
        harness.perform { streams.transport.reset() }
        harness.finish()
    }
}
