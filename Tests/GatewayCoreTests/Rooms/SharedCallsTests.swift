import Cluster
import GatewayCore
import Synchronization
import Testing

@Suite("Calls to other nodes that several wait for", .timeLimit(.minutes(5)))
struct SharedCallsTests {
    /// Calls that the test answers.
    private final class Scene: Sendable {
        let calls = SharedCalls()
        private let made = Mutex<[(text: String, answer: AsyncStream<[UInt8]>.Continuation)]>([])
        private let cancelled = Mutex(0)

        var texts: [String] { self.made.withLock { $0.map(\.text) } }
        var cancelledCount: Int { self.cancelled.withLock { $0 } }

        func call(_ node: String, _ content: [UInt8]) -> Task<SharedCalls.Answer, Never> {
            Task {
                do throws(ClusterError) {
                    return .success(
                        try await self.calls.call(node, content) { () async throws(ClusterError) in
                            try await self.perform("\(node) \(content)")
                        })
                } catch {
                    return .failure(error)
                }
            }
        }

        private func perform(_ text: String) async throws(ClusterError) -> [UInt8] {
            let (answers, answer) = AsyncStream.makeStream(of: [UInt8].self)
            self.made.withLock { $0.append((text, answer)) }
            // Ends with the task.
            for await bytes in answers {
                guard bytes.isEmpty else { return bytes }
                throw .busy
            }
            self.cancelled.withLock { $0 += 1 }
            throw .timeout(node: "cancelled")
        }

        /// - Parameter bytes: empty for an error.
        func answer(_ index: Int, _ bytes: [UInt8]) {
            _ = self.made.withLock { $0[index].answer.yield(bytes) }
        }

        func wait(until condition: () -> Bool) async {
            // A condition that never suspends would keep the thread from the tasks that make it true.
            while !condition() { await Task.yield() }
        }
    }

    @Test(arguments: [[7], []] as [[UInt8]])
    func callersWithTheSameContentShareACall(_ bytes: [UInt8]) async throws {
        let scene = Scene()
        let callers = (0..<20).map { _ in scene.call("b", [1]) }
        await scene.wait { scene.calls.callerCount == 20 && scene.texts.count > 0 }
        scene.answer(0, bytes)
        for caller in callers {
            let expected = bytes.isEmpty ? SharedCalls.Answer.failure(.busy) : .success(bytes)
            #expect(await caller.value == expected)
        }
        #expect(scene.texts == ["b [1]"] && scene.calls.callerCount == 0)
        // What is asked later needs a new answer.
        let later = scene.call("b", [1])
        await scene.wait { scene.texts.count == 2 }
        scene.answer(1, [8])
        #expect(await later.value == .success([8]))
    }

    @Test func otherContentOrNodeIsAnotherCall() async {
        let scene = Scene()
        let callers = [("b", 1), ("b", 2), ("c", 1)].map { scene.call($0, [UInt8($1)]) }
        await scene.wait { scene.texts.count == 3 }
        #expect(scene.texts.sorted() == ["b [1]", "b [2]", "c [1]"])
        for index in 0..<3 { scene.answer(index, [9]) }
        for caller in callers { #expect(await caller.value == .success([9])) }
    }

    @Test func callContinuesWhileACallerWaits() async {
        let scene = Scene()
        let (first, second) = (scene.call("b", [1]), scene.call("b", [1]))
        await scene.wait { scene.calls.callerCount == 2 && scene.texts.count == 1 }
        first.cancel()
        #expect(await first.value == .failure(.timeout(node: "b")))
        scene.answer(0, [7])
        #expect(await second.value == .success([7]))
        #expect(scene.cancelledCount == 0)
    }

    @Test func callWithoutCallersIsCancelled() async {
        let scene = Scene()
        let first = scene.call("b", [1])
        await scene.wait { scene.texts.count == 1 }
        first.cancel()
        #expect(await first.value == .failure(.timeout(node: "b")))
        // Its end is not taken for the end of the next one.
        let second = scene.call("b", [1])
        await scene.wait { scene.texts.count == 2 && scene.cancelledCount == 1 }
        scene.answer(1, [7])
        #expect(await second.value == .success([7]))
    }
}
