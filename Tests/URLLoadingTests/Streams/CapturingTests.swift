import Foundation
import SessionTasks
import Testing
import URLLoading

@Suite("Captured stream tasks", .loading, .timeLimit(.minutes(20)))
struct CapturingTests {
    /// Reads `count` bytes on a thread that may block.
    private func read(_ stream: ConnectionRecorder.Captured, _ count: Int) async -> String {
        await withCheckedContinuation { continuation in
            Thread.detachNewThread {
                var bytes: [UInt8] = []
                var buffer = [UInt8](repeating: 0, count: count)
                while bytes.count < count {
                    let got = stream.input.read(&buffer, maxLength: count - bytes.count)
                    guard got > 0 else { break }
                    bytes += buffer.prefix(got)
                }
                continuation.resume(returning: String(decoding: bytes, as: UTF8.self))
            }
        }
    }

    @Test func captureWaitsForQueuedOperations() async throws {
        let ended = Outcome<Bool>()
        let server = try await ConnectionServer { task in
            try await StreamTaskTests.echo(task)
            ended.give(true)
        }
        let recorder = ConnectionRecorder()
        let session = URLSession.test(recorder)
        let task = session.streamTask(withHostName: "127.0.0.1", port: server.port)
        let early = Outcome<Data?>()
        task.write(Data("early and late".utf8), timeout: 0) { _ in }
        task.readData(ofMinLength: 5, maxLength: 5, timeout: 0) { data, _, _ in early.give(data) }
        task.captureStreams()
        task.resume()
        let streams = try await recorder.captured.value()
        #expect(try await early.value() == Data("early".utf8))
        #expect(streams.input.streamStatus == .notOpen && streams.output.streamStatus == .notOpen)
        streams.input.open()
        streams.output.open()
        #expect(await self.read(streams, 9) == " and late")
        #expect(streams.output.write(Array("more".utf8), maxLength: 4) == 4)
        #expect(await self.read(streams, 4) == "more")
        streams.output.close()
        #expect(try await ended.value())
        #expect(await self.read(streams, 1) == "")
        streams.input.close()
        // That was the task's last message.
        let error = await #expect(throws: URLError.self) { try await task.write(Data(), timeout: 0) }
        #expect(error?.code == .networkConnectionLost && task.state == .completed && task.error == nil)
        #expect(recorder.eventsOfTheTask == ["created", "captured"])
        #expect(try await session.liveTasks().isEmpty)
        session.invalidateAndCancel()
    }

    @Test(arguments: [true, false])
    func whatIsRequestedAfterACaptureDoesNotEndTheStreams(_ isTLS: Bool) async throws {
        let server = try await ConnectionServer(StreamTaskTests.echo)
        let recorder = ConnectionRecorder()
        let session = URLSession.test(recorder)
        let task = session.streamTask(withHostName: "127.0.0.1", port: server.port)
        task.captureStreams()
        if isTLS { task.startSecureConnection() } else { task.captureStreams() }
        task.resume()
        let streams = try await recorder.captured.value()
        streams.input.open()
        streams.output.open()
        #expect(streams.output.write(Array("more".utf8), maxLength: 4) == 4)
        #expect(await self.read(streams, 4) == "more")
        #expect(recorder.eventsOfTheTask == ["created", "captured"])
        streams.output.close()
        streams.input.close()
        session.invalidateAndCancel()
    }

    @Test func outputThatWasClosedBeforeTheCaptureTakesNothing() async throws {
        let server = try await ConnectionServer(StreamTaskTests.echo)
        let recorder = ConnectionRecorder()
        let session = URLSession.test(recorder)
        let task = session.streamTask(withHostName: "127.0.0.1", port: server.port)
        task.closeWrite()
        task.captureStreams()
        task.resume()
        let streams = try await recorder.captured.value()
        streams.output.open()
        #expect(streams.output.write(Array("more".utf8), maxLength: 4) == -1)
        session.invalidateAndCancel()
    }

    @Test func captureFailsAfterAFailedOperation() async throws {
        let server = try await ConnectionServer(StreamTaskTests.echo)
        let recorder = ConnectionRecorder()
        let session = URLSession.test(recorder)
        let task = session.streamTask(withHostName: "127.0.0.1", port: server.port)
        task.readData(ofMinLength: 5, maxLength: 5, timeout: 0.05) { _, _, _ in }
        task.captureStreams()
        task.resume()
        #expect((try await recorder.end().error as? URLError)?.code == .timedOut)
        #expect(!recorder.eventsOfTheTask.contains("captured"))
        session.invalidateAndCancel()
    }
}
