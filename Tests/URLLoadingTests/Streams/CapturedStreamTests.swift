import Foundation
import SessionTasks
import StreamTransport
import Synchronization
import Testing
import URLLoading

@Suite("Streams of a connection that was taken out of its task", .loading, .timeLimit(.minutes(20)))
struct CapturedStreamTests {
    private static let long = (0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* 13 &+ $0 >> 11) }

    @Test func streamsOpenAndClose() async throws {
        let fixture = try await CapturedConnectionFixture { _ = PeerThread.receiveToEnd(from: $0) }
        var byte: [UInt8] = [0]
        #expect(fixture.input.streamStatus == .notOpen && fixture.output.streamStatus == .notOpen)
        #expect(fixture.input.read(&byte, maxLength: 1) == -1 && fixture.output.write(byte, maxLength: 1) == -1)
        fixture.input.open()
        fixture.output.open()
        #expect(fixture.input.streamStatus == .open && fixture.output.streamStatus == .open)
        #expect(!fixture.input.hasBytesAvailable && fixture.output.hasSpaceAvailable)
        fixture.input.close()
        fixture.output.close()
        #expect(fixture.input.streamStatus == .closed && fixture.output.streamStatus == .closed)
        #expect(fixture.input.read(&byte, maxLength: 1) == -1 && fixture.output.write(byte, maxLength: 1) == -1)
        #expect(fixture.input.streamError == nil && !fixture.output.hasSpaceAvailable)
        #expect(fixture.peer.isDone())
    }

    @Test func streamsCarryMoreThanTheirBuffersBothWays() async throws {
        let received = Mutex<[UInt8]>([])
        let fixture = try await CapturedConnectionFixture { descriptor in
            let all = PeerThread.receiveToEnd(from: descriptor)
            received.withLock { $0 = all }
            PeerThread.send(all, to: descriptor)
        }
        fixture.input.open()
        fixture.output.open()
        #expect(fixture.write(Self.long))
        fixture.output.close()
        let (bytes, last) = fixture.readToEnd()
        #expect(bytes == Self.long && last == 0 && received.withLock { $0 } == Self.long)
        #expect(fixture.input.streamStatus == .atEnd && fixture.input.streamError == nil)
    }

    @Test func capturedInputStartsWithBufferedBytes() async throws {
        let fixture = try await CapturedConnectionFixture(reading: 2) { descriptor in
            PeerThread.send(Array("abcdef".utf8), to: descriptor)
        }
        fixture.input.open()
        #expect(String(decoding: fixture.readToEnd(size: 3).bytes, as: UTF8.self) == "cdef")
    }

    @Test func resetByThePeerFailsTheStreams() async throws {
        let fixture = try await CapturedConnectionFixture { descriptor in
            _ = PeerThread.receive(1, from: descriptor)
            var option = linger(l_onoff: 1, l_linger: 0)
            setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
        }
        fixture.input.open()
        fixture.output.open()
        #expect(fixture.write([1]))
        #expect(fixture.readToEnd().last == -1)
        #expect(fixture.input.streamStatus == .error && fixture.output.streamStatus == .error)
        let error = try #require(fixture.input.streamError as? NSError)
        #expect(error.domain == NSPOSIXErrorDomain && error.code == Int(ECONNRESET))
        #expect(!fixture.write([1]))
    }

    @Test func releasedStreamsEndTheConnection() async throws {
        let fixture = try await CapturedConnectionFixture { _ = PeerThread.receiveToEnd(from: $0) }
        fixture.input.open()
        fixture.dropStreams()
        #expect(fixture.peer.isDone())
    }

    @Test func closingAStreamWakesABlockedRead() async throws {
        let fixture = try await CapturedConnectionFixture { _ = PeerThread.receiveToEnd(from: $0) }
        fixture.input.open()
        let box = StreamBox(fixture.input)
        let waited = DispatchSemaphore(value: 0)
        let counts = Mutex<[Int]>([])
        SystemThread.start(named: "reader") {
            var byte: [UInt8] = [0]
            let count = box.stream.read(&byte, maxLength: 1)
            counts.withLock { $0.append(count) }
            waited.signal()
        }
        fixture.input.close()
        #expect(await Self.wait(waited))
        #expect(counts.withLock { $0 } == [-1])
    }

    @Test func streamDelegateIsCalledOnItsRunLoop() async throws {
        let fixture = try await CapturedConnectionFixture { descriptor in
            let request = PeerThread.receive(5, from: descriptor)
            PeerThread.send(request + Array(" world".utf8), to: descriptor)
        }
        let box = FixtureBox(fixture)
        let outcome = await Self.onThread {
            let (input, output) = (StreamRecorder(), StreamRecorder())
            output.outgoing = Array("hello".utf8)
            for (stream, recorder) in [(box.fixture.input, input), (box.fixture.output, output)]
                as [(Stream, StreamRecorder)]
            {
                stream.delegate = recorder
                stream.schedule(in: .current, forMode: .default)
                stream.open()
            }
            let isDone = StreamRecorder.run { input.events.last == .endEncountered }
            box.fixture.input.remove(from: .current, forMode: .default)
            box.fixture.output.remove(from: .current, forMode: .default)
            // Nothing is pending.
            let isEmpty = !RunLoop.current.run(mode: .default, before: Date(timeIntervalSinceNow: 60))
            return (isDone, isEmpty, input.events, input.bytes, output.events)
        }
        #expect(outcome.0 && outcome.1)
        #expect(String(decoding: outcome.3, as: UTF8.self) == "hello world")
        #expect(outcome.2.first == .openCompleted && outcome.2.filter { $0 == .endEncountered }.count == 1)
        #expect(outcome.4.prefix(2) == [.openCompleted, .hasSpaceAvailable])
    }

    @Test func earlierEventsAreReportedAfterScheduling() async throws {
        let fixture = try await CapturedConnectionFixture { PeerThread.send([7, 8], to: $0) }
        let box = FixtureBox(fixture)
        let bytes = await Self.onThread {
            let recorder = StreamRecorder()
            box.fixture.input.delegate = recorder
            box.fixture.input.open()
            box.fixture.input.schedule(in: .current, forMode: .default)
            _ = StreamRecorder.run { recorder.events.last == .endEncountered }
            return recorder.bytes
        }
        #expect(bytes == [7, 8])
    }

    private static func wait(_ semaphore: DispatchSemaphore) async -> Bool {
        await self.onThread { semaphore.wait(timeout: .now() + 60) == .success }
    }

    /// Runs `body` on a thread that may block and has a run loop.
    private static func onThread<R: Sendable>(_ body: @escaping @Sendable () -> R) async -> R {
        await withCheckedContinuation { continuation in
            SystemThread.start(named: "waiter") { continuation.resume(returning: body()) }
        }
    }
}

/// Moves a stream to another thread.
private struct StreamBox: @unchecked Sendable {
    let stream: InputStream
    init(_ stream: InputStream) { self.stream = stream }
}

private struct FixtureBox: @unchecked Sendable {
    let fixture: CapturedConnectionFixture
    init(_ fixture: CapturedConnectionFixture) { self.fixture = fixture }
}
