import ControlAPI
import FoundationEssentials
import GatewayCore
import HTTPTypes
import Hummingbird
import HummingbirdCore
import NIOCore
import Synchronization

/// `/v1/operations`: requests that go on while nobody waits.
struct OperationsResource: Sendable {
    let context: ControlContext

    private var registry: OperationRegistry { self.context.operations }

    var operations: [Operation] {
        let one = "/v1/operations/{id}"
        return [
            Operation("listOperations", .get, "/v1/operations", .read) { self.list($0) },
            Operation("getOperation", .get, one, .read) { try await self.get($0) },
            Operation("cancelOperation", .delete, one, .operate) { try await self.cancel($0) },
        ]
    }

    private func find(_ call: ControlCall) throws(ControlProblem) -> RunningOperation {
        let name = call.parameters["id"] ?? ""
        guard let running = self.registry.find(name), running.isVisible(to: call.caller) else {
            throw ControlProblem(
                404, "unknown-operation", "There is no operation \(name.prefix(64)), and none is remembered.")
        }
        return running
    }

    private func list(_ call: ControlCall) -> Response {
        let shown = self.registry.all.filter { $0.isVisible(to: call.caller) }
        return .json(
            OperationList(
                items: shown.map { running in
                    var record = running.record
                    // Asked for one by one.
                    record.answer = nil
                    return record
                }))
    }

    private func get(_ call: ControlCall) async throws -> Response {
        let running = try self.find(call)
        if let seconds = call.waitPreference() { _ = await running.outcome(within: .seconds(seconds)) }
        return .json(running.record)
    }

    private func cancel(_ call: ControlCall) async throws -> Response {
        let running = try self.find(call)
        guard running.outcome == nil else {
            self.registry.remove(running)
            return .noContent
        }
        running.cancel()
        let isOver = await running.outcome(within: .seconds(call.waitPreference() ?? 5)) != nil
        return .json(running.record, status: isOver ? .ok : .accepted)
    }
}

/// The operations that are under way or were. Bounded: the oldest that is over makes room.
final class OperationRegistry: Sendable {
    static let limit = 256

    private struct State {
        /// In the order in which they began.
        var operations: [RunningOperation] = []
        var last: UInt64 = 0
        var isStopped = false
    }

    private let state = Mutex(State())

    var all: [RunningOperation] { self.state.withLock { $0.operations } }

    func find(_ name: String) -> RunningOperation? {
        guard let number = UInt64(name), "\(number)" == name else { return nil }
        return self.state.withLock { $0.operations.first { $0.number == number } }
    }

    /// - Throws: `ControlProblem` 429 where as many go on as may.
    func add(_ operation: Operation, by caller: Caller) throws(ControlProblem) -> RunningOperation {
        let running = self.state.withLock { state -> RunningOperation? in
            if state.operations.count >= Self.limit {
                guard let index = state.operations.firstIndex(where: { $0.outcome != nil }) else { return nil }
                state.operations.remove(at: index)
            }
            guard !state.isStopped else { return nil }
            state.last += 1
            let running = RunningOperation(operation, by: caller, number: state.last)
            state.operations.append(running)
            return running
        }
        guard let running else {
            throw ControlProblem(
                429, "too-many-operations",
                "\(Self.limit) operations go on already; wait for one to end, or give one up."
            ).retryable(after: 1)
        }
        return running
    }

    func remove(_ operation: RunningOperation) {
        self.state.withLock { $0.operations.removeAll { $0 === operation } }
    }

    /// Gives up all of them.
    func stop() {
        let operations = self.state.withLock { state in
            state.isStopped = true
            return state.operations
        }
        for operation in operations { operation.cancel() }
    }
}

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
        let task = Task { self.end(await OperationOutcome.run(work)) }
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
    func connectionCreated(_ key: ConnectionKey) {
        self.state.withLock { $0.connection = key }
        self.begun.continuation.finish()
    }

    func cancel() {
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
        _ = await Waiting.forResult(within: limit) { await task.value }
        return self.outcome
    }

    /// Until it has a name or is over: a turn of a loop.
    func waitForConnection(within limit: Duration) async {
        let stream = self.begun.stream
        _ = await Waiting.forResult(within: limit) { for await _ in stream {} }
    }

    // MARK: Showing

    /// Who may do the like may see it: what it answers is for them.
    func isVisible(to caller: Caller) -> Bool {
        self.operation.scope.required.map { caller.scopes.contains($0) } ?? true
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

/// What an operation came to.
enum OperationOutcome: Sendable {
    case response(status: HTTPResponse.Status, headers: HTTPFields, body: [UInt8])
    case problem(ControlProblem)
    /// A fault of our own.
    case internalError(any Error)

    static func run(_ work: @Sendable () async throws -> Response) async -> OperationOutcome {
        do {
            let response = try await work()
            let collected = BodyCollector()
            try await response.body.write(collected)
            return .response(status: response.status, headers: response.headers, body: collected.bytes)
        } catch let problem as ControlProblem {
            return .problem(problem)
        } catch is CancellationError {
            return .problem(ControlProblem(409, "cancelled", "The operation was given up."))
        } catch {
            return .internalError(error)
        }
    }

    /// The answer, as if its client had waited.
    func response() throws -> Response {
        switch self {
        case .response(let status, let headers, let body):
            return Response(
                status: status, headers: headers, body: ResponseBody(byteBuffer: ByteBuffer(bytes: body)))
        case .problem(let problem): throw problem
        case .internalError(let error): throw error
        }
    }

    var hasSucceeded: Bool {
        if case .response = self { true } else { false }
    }

    var status: Int {
        switch self {
        case .response(let status, _, _): status.code
        case .problem(let problem): problem.status
        case .internalError: 500
        }
    }

    var location: String? {
        if case .response(_, let headers, _) = self { headers[.location] } else { nil }
    }

    var body: [UInt8] {
        switch self {
        case .response(_, _, let body): body
        case .problem(let problem): problem.json
        case .internalError:
            ControlProblem(500, "internal-fault", "A fault of the gateway itself; its log says more.").json
        }
    }
}

/// Lets a client that prefers so go, while its request is carried out (RFC 7240).
struct LongRunningRequests: Sendable {
    /// For what is opened to get its name, which takes a turn of a loop.
    private static let naming = Duration.seconds(2)

    let registry: OperationRegistry

    func run(
        _ call: ControlCall, _ perform: @escaping @Sendable (ControlCall) async throws -> Response
    ) async throws -> Response {
        guard call.operation.isLongRunning, call.prefersAsynchronous || call.waitPreference() != nil else {
            return try await perform(call)
        }
        var call = call
        // Its connection is free for other requests as soon as this one is answered.
        call.request.body = RequestBody(buffer: try await call.body())
        let running = try self.registry.add(call.operation, by: call.caller)
        call.runningOperation = running
        running.start { [call] in try await perform(call) }
        if let outcome = await Self.early(running, call) {
            self.registry.remove(running)
            return try outcome.response()
        }
        return .json(
            JSONBody.encode(running.record), status: .accepted,
            headers: [.location: "/v1/operations/\(running.number)"])
    }

    /// What it came to, if the client can be told at once: within the time that it is willing to wait, or that it asked
    /// for something that cannot be.
    private static func early(_ running: RunningOperation, _ call: ControlCall) async -> OperationOutcome? {
        if let seconds = call.waitPreference() { return await running.outcome(within: .seconds(seconds)) }
        await running.waitForConnection(within: Self.naming)
        guard case .problem(let problem)? = running.outcome, problem.status < 500 else { return nil }
        return running.outcome
    }
}
