import ByteKernels
import SessionTasks
import StreamTransport
import TestSupport
import Testing

@Suite("Cancelled Swift tasks", .serialized)
struct CancelledSwiftTasksTests {
    /// Both ends of one connection over loopback.
    private func connected(_ group: LoopGroup) async throws -> (accepted: StreamTask, opened: StreamTask) {
        let loop = group.loops[0]
        let tasks: [StreamTask] = await withCheckedContinuation { continuation in
            loop.execute {
                let acceptor = Acceptor()
                guard let listener = try? SocketListener(LoopbackClient.address, on: loop, owner: acceptor) else {
                    return continuation.resume(returning: [])
                }
                let opened = StreamTask(to: OpeningTarget(.address(listener.address)), on: loop)
                acceptor.onAccepted = { connection in
                    listener.close()
                    continuation.resume(returning: [StreamTask(adopting: connection), opened])
                }
                opened.resumeOnLoop()
            }
        }
        return (try #require(tasks.first), try #require(tasks.last))
    }

    @Test(arguments: UInt64(1)...4)
    func everyByteComesOnceAndInItsPlace(_ seed: UInt64) async throws {
        let group = try LoopGroup(count: 1)
        defer { group.stop() }
        let (reader, writer) = try await self.connected(group)
        var chance = SeededGenerator(seed: seed)
        let sent = chance.bytes(60_000)
        let cuts = chance.cuts(of: sent.count, longest: 700)
        let writing = Task {
            for cut in cuts { try await writer.write(Array(sent[cut])) }
            writer.closeWrite()
        }
        var received: [UInt8] = []
        var cancelled = 0
        var isAtEnd = false
        while !isAtEnd {
            let maximum = Int.random(in: 1...900, using: &chance)
            let minimum = Int.random(in: 1...maximum, using: &chance)
            let reading = Task { try await reader.read(minimum: minimum, maximum: maximum) }
            if Int.random(in: 0..<3, using: &chance) == 0 {
                if Bool.random(using: &chance) { await Task.yield() }
                reading.cancel()
            }
            switch await reading.result {
            case .success(let chunk):
                received += chunk.bytes
                isAtEnd = chunk.isAtEnd
            case .failure(let failure):
                #expect(failure as? TaskFailure == .cancelled, "seed \(seed)")
                cancelled += 1
            }
        }
        try await writing.value
        #expect(received == sent, "seed \(seed)")
        #expect(cancelled > 0, "seed \(seed)")
        reader.cancel()
        writer.cancel()
    }

    @Test func readCancelledBeforeItsStartConsumesNothing() async throws {
        let group = try LoopGroup(count: 1)
        defer { group.stop() }
        let (reader, writer) = try await self.connected(group)
        try await writer.write(Array("whole".utf8))
        let reading = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await reader.read(maximum: 3)
        }
        await #expect(throws: TaskFailure.cancelled) { try await reading.value }
        let chunk = try await reader.read(minimum: 5, maximum: 9)
        #expect(chunk.bytes == Array("whole".utf8))
        reader.cancel()
        writer.cancel()
    }
}
