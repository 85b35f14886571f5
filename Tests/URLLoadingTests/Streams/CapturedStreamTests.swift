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
        let ground = try await CapturedConnectionGround { _ = PeerThread.receiveToEnd(from: $0) }
        var byte: [UInt8] = [0]
        #expect(ground.input.streamStatus == .notOpen && ground.output.streamStatus == .notOpen)
        #expect(ground.input.read(&byte, maxLength: 1) == -1 && ground.output.write(byte, maxLength: 1) == -1)
        ground.input.open()
        ground.output.open()
        #expect(ground.input.streamStatus == .open && ground.output.streamStatus == .open)
        #expect(!ground.input.hasBytesAvailable && ground.output.hasSpaceAvailable)
        ground.input.close()
        ground.output.close()
        #expect(ground.input.streamStatus == .closed && ground.output.streamStatus == .closed)
        #expect(ground.input.read(&byte, maxLength: 1) == -1 && ground.output.write(byte, maxLength: 1) == -1)
        #expect(ground.input.streamError == nil && !ground.output.hasSpaceAvailable)
        #expect(ground.peer.isDone())
    }

    @Test func streamsCarryMoreThanTheirBuffersBothWays() async throws {
        let received = Mutex<[UInt8]>([])
        let ground = try await CapturedConnectionGround { descriptor in
            let all = PeerThread.receiveToEnd(from: descriptor)
            received.withLock { $0 = all }
            PeerThread.send(all, to: descriptor)
        }
        ground.input.open()
        ground.output.open()
        #expect(ground.write(Self.long))
        ground.output.close()
        let (bytes, last) = ground.readToEnd()
        #expect(bytes == Self.long && last == 0 && received.withLock { $0 } == Self.long)
        #expect(ground.input.streamStatus == .atEnd && ground.input.streamError == nil)
    }

    @Test func capturedInputStartsWithBufferedBytes() async throws {
        let ground = try await CapturedConnectionGround(reading: 2) { descriptor in
            PeerThread.send(Array("abcdef".utf8), to: descriptor)
        }
        ground.input.open()
        #expect(String(decoding: ground.readToEnd(size: 3).bytes, as: UTF8.self) == "cdef")
    }

    @Test func resetByThePeerFailsTheStreams() async throws {
        let ground = try await CapturedConnectionGround { descriptor in
            _ = PeerThread.receive(1, from: descriptor)
            var option = linger(l_onoff: 1, l_linger: 0)
            setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
        }
        ground.input.open()
        ground.output.open()
        #expect(ground.write([1]))
        #expect(ground.readToEnd().last == -1)
        #expect(ground.input.streamStatus == .error && ground.output.streamStatus == .error)
        let error = try #require(ground.input.streamError as? NSError)
        #expect(error.domain == NSPOSIXErrorDomain && error.code == Int(ECONNRESET))
        #expect(!ground.write([1]))
    }

    @Test func releasedStreamsEndTheConnection() async throws {
        let ground = try await CapturedConnectionGround { _ = PeerThread.receiveToEnd(from: $0) }
        ground.input.open()
        ground.dropStreams()
        #expect(ground.peer.isDone())
    }

    @Test func closingAStreamWakesABlockedRead() async throws {
        let ground = try await CapturedConnectionGround { _ = PeerThread.receiveToEnd(from: $0) }
        ground.input.open()
        let box = StreamBox(ground.input)
        let waited = DispatchSemaphore(value: 0)
        let counts = Mutex<[Int]>([])
        SystemThread.start(named: "reader") {
            var byte: [UInt8] = [0]
            let count = box.stream.read(&byte, maxLength: 1)
            counts.withLock { $0.append(count) }
            waited.signal()
        }
        ground.input.close()
        #expect(await Self.wait(waited))
        #expect(counts.withLock { $0 } == [-1])
    }

    @Test func streamDelegateIsCalledOnItsRunLoop() async throws {
        let ground = try await CapturedConnectionGround { descriptor in
            let request = PeerThread.receive(5, from: descriptor)
            PeerThread.send(request + Array(" world".utf8), to: descriptor)
        }
        let box = GroundBox(ground)
        let outcome = await Self.onThread {
            let (input, output) = (StreamDiary(), StreamDiary())
            output.outgoing = Array("hello".utf8)
            for (stream, diary) in [(box.ground.input, input), (box.ground.output, output)] as [(Stream, StreamDiary)] {
                stream.delegate = diary
                stream.schedule(in: .current, forMode: .default)
                stream.open()
            }
            let isDone = StreamDiary.run { input.events.last == .endEncountered }
            box.ground.input.remove(from: .current, forMode: .default)
            box.ground.output.remove(from: .current, forMode: .default)
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
        let ground = try await CapturedConnectionGround { PeerThread.send([7, 8], to: $0) }
        let box = GroundBox(ground)
        let bytes = await Self.onThread {
            let diary = StreamDiary()
            box.ground.input.delegate = diary
            box.ground.input.open()
            box.ground.input.schedule(in: .current, forMode: .default)
            _ = StreamDiary.run { diary.events.last == .endEncountered }
            return diary.bytes
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

private struct GroundBox: @unchecked Sendable {
    let ground: CapturedConnectionGround
    init(_ ground: CapturedConnectionGround) { self.ground = ground }
}
