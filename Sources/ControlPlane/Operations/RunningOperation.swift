import ControlAPI
import FoundationEssentials
import GatewayCore
import Hummingbird
import HummingbirdCore
import Synchronization

/// One request that goes on by itself. From any thread.
final class RunningOperation: Sendable {
    /// Bytes of an answer that are shown; a longer one is not.
    static let answerLimit = 256 << 10

    private struct State {
        var task: Task<Void, Never>?
        var connection: ConnectionKey?
        var outcome: OperationOutcome?
        var endedAt: String?
        var isGivenUp = false
    }

    let number: UInt64
    let operation: Operation
    private let caller: Caller
    private let startedAt = WallClock.now()
    private let state = Mutex(State())
    /// Finished as soon as it has a name, or is over.
    private let begun = AsyncStream.makeStream(of: Void.self)

    init(_ operation: Operation, by caller: Caller, number: UInt64) {
        self.operation = operation
        self.caller = caller
        self.number = number
    }

    func start(_ work: @escaping @Sendable () async throws -> Response) {
        let task = Task { self.end(await OperationOutcome.of(work)) }
        let isGivenUp = self.state.withLock { state in
            if state.outcome == nil { state.task = task }
            return state.isGivenUp
        }
        if isGivenUp { task.cancel() }
    }

    private func end(_ outcome: OperationOutcome) {
        self.state.withLock { state in
            state.outcome = outcome
            state.endedAt = WallClock.now()
            state.task = nil
        }
        self.begun.continuation.finish()
    }

    /// What it is about is there.
    func name(_ key: ConnectionKey) {
        self.state.withLock { $0.connection = key }
        self.begun.continuation.finish()
    }

    func giveUp() {
        let task = self.state.withLock { state in
            state.isGivenUp = true
            return state.task
        }
        task?.cancel()
    }

    var outcome: OperationOutcome? { self.state.withLock { $0.outcome } }

    // MARK: Waiting

    /// - Returns: what it came to, if that was in time.
    func outcome(within limit: Duration) async -> OperationOutcome? {
        guard let task = self.state.withLock({ $0.task }) else { return self.outcome }
        _ = await Waiting.forOutcome(within: limit) { await task.value }
        return self.outcome
    }

    /// Until it has a name or is over: a turn of a loop.
    func waitForName(within limit: Duration) async {
        let stream = self.begun.stream
        _ = await Waiting.forOutcome(within: limit) { for await _ in stream {} }
    }

    // MARK: Showing

    /// Who may do the like may see it: what it answers is for them.
    func isShown(to caller: Caller) -> Bool {
        self.operation.scope.needed.map { caller.scopes.contains($0) } ?? true
    }

    var record: OperationRecord {
        let (state, outcome) = self.state.withLock { ($0, $0.outcome) }
        var record = OperationRecord(
            id: "\(self.number)", operation: self.operation.name, state: Self.word(state), caller: self.caller.name,
            startedAt: self.startedAt)
        record.connection = state.connection?.description
        guard let outcome else { return record }
        record.endedAt = state.endedAt
        record.status = outcome.status
        record.location = outcome.location
        let body = outcome.body
        guard body.count <= Self.answerLimit else { return record }
        record.answer = try? JSONDecoder().decode(JSONValue.self, from: Data(body))
        return record
    }

    private static func word(_ state: State) -> String {
        guard let outcome = state.outcome else { return "running" }
        return outcome.hasSucceeded ? "succeeded" : state.isGivenUp ? "cancelled" : "failed"
    }
}
