import Cluster
import GatewayCore
import Synchronization
import Testing

@Suite("Forwarding commands to the node of their client", .timeLimit(.minutes(5)))
struct CommandForwarderTests {
    /// A call to a node, which the test answers.
    private struct SentCall: Sendable {
        let node: String
        let commands: [ForwardedCommands]
        let answer: CheckedContinuation<Result<[UInt8], ClusterError>, Never>

        var texts: [String] { self.commands.map { String(decoding: $0.data, as: UTF8.self) } }

        func answer(_ outcomes: CommandsOutcome...) {
            self.answer.resume(returning: .success(outcomes.map(\.rawValue)))
        }

        func fail(_ error: ClusterError) { self.answer.resume(returning: .failure(error)) }
    }

    /// A forwarder of the node `a`, and the calls that it makes.
    private final class Scene {
        let forwarder: CommandForwarder
        private var calls: AsyncStream<SentCall>.Iterator

        init(timeout: Duration = .seconds(300)) {
            let (calls, added) = AsyncStream.makeStream(of: SentCall.self)
            self.calls = calls.makeAsyncIterator()
            self.forwarder = CommandForwarder(node: "a", timeout: timeout) {
                (node, content, _) async throws(ClusterError) in
                let commands = ForwardedCommands.decoded(content) ?? []
                return try await withCheckedContinuation {
                    _ = added.yield(SentCall(node: node, commands: commands, answer: $0))
                }.get()
            }
        }

        func call() async throws -> SentCall {
            try #require(await self.calls.next(isolation: #isolation))
        }

        func forward(_ text: String, of session: String = "s", to node: String = "b") -> Outcome {
            self.forward(Array(text.utf8), of: session, to: node)
        }

        func forward(_ data: [UInt8], of session: String = "s", to node: String = "b") -> Outcome {
            let (outcomes, added) = AsyncStream.makeStream(of: CommandsOutcome.self)
            self.forwarder.forward(ForwardedCommands(session: session, data: data), to: node) { _ = added.yield($0) }
            return Outcome(outcomes: outcomes)
        }
    }

    private struct Outcome {
        let outcomes: AsyncStream<CommandsOutcome>

        var value: CommandsOutcome? {
            get async {
                var iterator = self.outcomes.makeAsyncIterator()
                return await iterator.next()
            }
        }
    }

    @Test func commandsThatComeDuringACallLeaveTogetherInTheirOrder() async throws {
        let scene = Scene()
        let first = scene.forward("1")
        let call = try await scene.call()
        #expect(call.node == "b" && call.texts == ["1"])
        let (second, third, fourth) = (scene.forward("2"), scene.forward("3", of: "t"), scene.forward("4"))
        call.answer(.accepted)
        #expect(await first.value == .accepted)
        let next = try await scene.call()
        #expect(next.texts == ["2", "3", "4"] && next.commands.map(\.session) == ["s", "t", "s"])
        next.answer(.accepted, .unknownSession, .overflowed)
        #expect(await second.value == .accepted)
        #expect(await third.value == .unknownSession)
        #expect(await fourth.value == .overflowed)
    }

    @Test func nodesDoNotWaitForEachOther() async throws {
        let scene = Scene()
        let slow = scene.forward("1", to: "b")
        let silent = try await scene.call()
        let fast = scene.forward("2", to: "c")
        try await scene.call().answer(.accepted)
        #expect(await fast.value == .accepted)
        silent.answer(.accepted)
        #expect(await slow.value == .accepted)
    }

    @Test(arguments: [
        (ClusterError.away, CommandsOutcome.unreachable), (.timeout(node: "b"), .unreachable),
        (.unknownNode("b"), .unknownNode), (.busy, .busy),
    ])
    func commandsThatWaitBehindLostOnesFailToo(_ error: ClusterError, _ outcome: CommandsOutcome) async throws {
        let scene = Scene()
        let first = scene.forward("1")
        let call = try await scene.call()
        let second = scene.forward("2")
        call.fail(error)
        #expect(await first.value == outcome)
        #expect(await second.value == outcome)
        let third = scene.forward("3")
        let next = try await scene.call()
        #expect(next.texts == ["3"])
        next.answer(.accepted)
        #expect(await third.value == .accepted)
    }

    @Test(arguments: [[], [1, 1], [4], [9]] as [[UInt8]])
    func answerThatIsNoneIsAFailure(_ answer: [UInt8]) async throws {
        let scene = Scene()
        let outcome = scene.forward("1")
        try await scene.call().answer.resume(returning: .success(answer))
        #expect(await outcome.value == .unreachable)
    }

    @Test func commandsThatWaitedTooLongAreNotSent() async {
        let scene = Scene(timeout: .zero)
        #expect(await scene.forward("1").value == .unreachable)
    }

    @Test func namesThatNoNodeHasAreNotAsked() async {
        let scene = Scene()
        #expect(await scene.forward("1", to: "").value == .unknownNode)
        #expect(await scene.forward("1", to: String(repeating: "n", count: 256)).value == .unknownNode)
        #expect(await scene.forward("1", of: String(repeating: "s", count: 256)).value == .unknownNode)
        #expect(await scene.forward("1", to: "a").value == .unknownSession)
    }

    @Test func whatWaitsForAClientAndForANodeIsBounded() async throws {
        let scene = Scene()
        let first = scene.forward("1")
        let call = try await scene.call()
        let quarter = [UInt8](repeating: 0, count: CommandForwarder.clientLimit / 4)
        var waiting: [Outcome] = []
        for session in ["s", "t", "u", "v", "w"] {
            for _ in 0..<3 { waiting.append(scene.forward(quarter, of: session)) }
        }
        #expect(await scene.forward(quarter, of: "s").value == .overflowed)
        #expect(await scene.forward(quarter, of: "x").value == .busy)
        call.fail(.away)
        for outcome in [first] + waiting { #expect(await outcome.value == .unreachable) }
        // Other nodes, and this one when nothing waits any more, get commands again.
        let last = scene.forward(quarter, of: "s")
        try await scene.call().answer(.accepted)
        #expect(await last.value == .accepted)
    }

    // MARK: Messages between nodes

    @Test func commandsAreReadBack() {
        let all = [
            ForwardedCommands(session: String(repeating: "s", count: 255), data: []),
            ForwardedCommands(session: "é", data: [UInt8](repeating: 7, count: 70_000)),
        ]
        #expect(ForwardedCommands.decoded(ForwardedCommands.encoded(all)) == all)
        #expect(ForwardedCommands.encoded([.init(session: "s", data: [9])]) == [1, 0x73, 0, 0, 0, 1, 9])
        #expect(ForwardedCommands.decoded([]) == [])
    }

    @Test(
        arguments: [
            [0], [0, 0, 0, 0, 0], [1], [1, 0x73], [1, 0x73, 0, 0, 0], [1, 0x73, 0, 0, 0, 1], [1, 0xFF, 0, 0, 0, 0],
            [1, 0x73, 0xFF, 0xFF, 0xFF, 0xFF, 1], [1, 0x73, 0, 0, 0, 1, 9, 1],
        ] as [[UInt8]])
    func bytesThatAreNoCommandsAreRefused(_ bytes: [UInt8]) {
        #expect(ForwardedCommands.decoded(bytes) == nil)
    }
}
