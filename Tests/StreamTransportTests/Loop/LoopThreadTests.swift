import Foundation
import StreamTransport
import Synchronization
import TestSupport
import Testing

@Suite("A loop on its own thread")
struct LoopThreadTests {
    /// An actor whose code runs on a loop.
    private actor Resident {
        private let loop: Loop
        private var steps: [Bool] = []

        init(_ loop: Loop) {
            self.loop = loop
        }

        nonisolated var unownedExecutor: UnownedSerialExecutor {
            self.loop.asUnownedSerialExecutor()
        }

        func step() async -> [Bool] {
            self.steps.append(self.loop.isCurrent)
            await Task.yield()
            self.steps.append(self.loop.isCurrent)
            return self.steps
        }
    }

    @Test func workOfOtherThreadsRunsInOrder() async throws {
        let group = try LoopGroup(count: 1)
        defer { group.stop() }
        let loop = group.loops[0]
        let numbers = await withCheckedContinuation { (done: CheckedContinuation<[Int], Never>) in
            let seen = Mutex<[Int]>([])
            for number in 0..<1000 {
                loop.execute {
                    let all = seen.withLock { list in
                        list.append(loop.isCurrent ? number : -1)
                        return list
                    }
                    if all.count == 1000 { done.resume(returning: all) }
                }
            }
        }
        #expect(numbers == Array(0..<1000))
        #expect(!loop.isCurrent)
    }

    @Test func workOfManyThreadsIsNotLost() async throws {
        let group = try LoopGroup(count: 2)
        defer { group.stop() }
        let total = await withTaskGroup(of: Int.self) { tasks in
            for index in 0..<8 {
                let loop = group.loops[index % 2]
                tasks.addTask {
                    var done = 0
                    for _ in 0..<200 {
                        done += await withCheckedContinuation { continuation in
                            loop.execute { continuation.resume(returning: 1) }
                        }
                    }
                    return done
                }
            }
            return await tasks.reduce(0, +)
        }
        #expect(total == 1600)
    }

    @Test func asyncCodeRunsOnTheLoopAsItsExecutor() async throws {
        let group = try LoopGroup(count: 2)
        defer { group.stop() }
        let residents = group.loops.map { Resident($0) }
        for _ in 0..<20 {
            for resident in residents {
                let steps = await resident.step()
                #expect(steps.allSatisfy { $0 })
            }
        }
    }

    @Test func socketsAreServedOnTheLoopsThread() async throws {
        let group = try LoopGroup(count: 1)
        defer { group.stop() }
        let loop = group.loops[0]
        let port = try await withCheckedThrowingContinuation { (done: CheckedContinuation<UInt16, any Error>) in
            loop.execute {
                let collector = ConnectionCollector()
                collector.onAccepted = { connection, consumer in
                    consumer.onInputClosed = {
                        connection.write(consumer.received)
                        connection.close(linger: .seconds(1))
                    }
                }
                do {
                    let listener = try SocketListener(LoopbackClient.address, on: loop, owner: collector)
                    done.resume(returning: listener.address.port ?? 0)
                } catch {
                    done.resume(throwing: error)
                }
            }
        }
        let client = try LoopbackClient(port: port)
        try client.send("there and back")
        client.finish()
        let heard = try client.receiveToEnd()
        #expect(String(decoding: heard, as: UTF8.self) == "there and back")
    }

    @Test func loopThreadWakesForWorkAndStops() async throws {
        let loop = Loop(system: try LinuxSystem())
        let ended = Atomic<Bool>(false)
        await withCheckedContinuation { (done: CheckedContinuation<Void, Never>) in
            Thread.detachNewThread {
                loop.run()
                ended.store(true, ordering: .releasing)
                done.resume()
            }
            loop.execute { loop.stop() }
        }
        let hasEnded = ended.load(ordering: .acquiring)
        #expect(hasEnded)
    }
}
