import ControlAPI
import GatewayCore
import HTTPTypes
import HummingbirdCore
import NIOCore
import Synchronization

/// `/v1/operations`: requests that run without their clients waiting.
struct OperationsResource: Sendable {
    let context: ControlContext

    private var registry: OperationRegistry { self.context.operations }

    var operations: [Operation] {
        let one = PathTemplate("/v1/operations/{id}", .init("The operation's id.", example: "1"))
        return [
            Operation(
                "listOperations", .get, "/v1/operations", .read,
                OperationDocument(
                    "Lists running and recently ended operations",
                    responses: [.init(200, "The operations visible to the caller", .json(OperationList.self))])
            ) { self.list($0) },
            Operation(
                "getOperation", .get, one, .read,
                OperationDocument(
                    "Gets an operation",
                    headers: ["Prefer": "wait=N: waits at most N seconds for its end (RFC 7240)."],
                    responses: [.init(200, "The current state", .json(OperationRecord.self))], problems: [404])
            ) { try await self.get($0) },
            Operation(
                "cancelOperation", .delete, one, .operate,
                OperationDocument(
                    "Cancels an operation; removes it if it has ended",
                    responses: [
                        .init(200, "The current state", .json(OperationRecord.self)),
                        .init(202, "Cancelling", .json(OperationRecord.self)), .init(204, "Removed"),
                    ], problems: [404])
            ) { try await self.cancel($0) },
        ]
    }

    private func find(_ call: ControlCall) throws(ControlProblem) -> RunningOperation {
        let name = call.parameters["id"] ?? ""
        guard let running = self.registry.find(name), running.isVisible(to: call.caller) else {
            throw ControlProblem(404, "unknown-operation", "There is no operation \(name.prefix(64)).")
        }
        return running
    }

    private func list(_ call: ControlCall) -> Response {
        let items = self.registry.all.filter { $0.isVisible(to: call.caller) }.map { running in
            var record = running.record
            // Only `getOperation` returns it.
            record.answer = nil
            return record
        }
        return .json(OperationList { $0.items = items })
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

/// The running and recent operations. Bounded: the oldest finished one is dropped.
final class OperationRegistry: Sendable {
    private static let limit = 256
    private static let full = ControlProblem(
        429, "too-many-operations",
        "\(OperationRegistry.limit) operations are running already; wait for one to finish, or cancel one."
    ).retryable(after: 1)

    private let records = Mutex(
        BoundedRecords<RunningOperation>(limit: OperationRegistry.limit, full: OperationRegistry.full) {
            $0.outcome != nil
        })

    /// In the order of their start.
    var all: [RunningOperation] { self.records.withLock { $0.records } }

    func find(_ name: String) -> RunningOperation? {
        guard let number = UInt64(name), "\(number)" == name else { return nil }
        return self.all.first { $0.number == number }
    }

    /// - Throws: `ControlProblem` 429 at the limit of running operations, 503 while the server stops.
    func add(_ operation: Operation, by caller: Caller) throws(ControlProblem) -> RunningOperation {
        try self.records.withLock { (records) throws(ControlProblem) in
            try records.add { RunningOperation(operation, by: caller, number: $0) }
        }
    }

    func remove(_ operation: RunningOperation) {
        self.records.withLock { $0.remove { $0 === operation } }
    }

    /// Cancels all operations.
    func stop() {
        let operations = self.records.withLock { records in
            records.stop()
            return records.records
        }
        for operation in operations { operation.cancel() }
    }
}

/// One request that runs without its client waiting. Thread-safe.
final class RunningOperation: Sendable {
    /// Longest response body in its record, in bytes; a longer one is left out.
    private static let responseLimit = 256 << 10

    private struct State {
        var task: Task<Void, Never>?
        var connection: ConnectionKey?
        var outcome: OperationOutcome?
        var endedAt: String?
        var isCancelled = false
    }

    let number: UInt64
    let operation: Operation
    private let caller: Caller
    private let startedAt = WallClock.now()
    private let state = Mutex(State())
    /// The request was accepted, or the operation has ended.
    private let accepted = OneTimeEvent()
    private let ended = OneTimeEvent()

    init(_ operation: Operation, by caller: Caller, number: UInt64) {
        self.operation = operation
        self.caller = caller
        self.number = number
    }

    func start(_ work: @escaping @Sendable () async throws -> Response) {
        let task = Task { self.end(await OperationOutcome.run(work)) }
        let isCancelled = self.state.withLock { state in
            if state.outcome == nil { state.task = task }
            return state.isCancelled
        }
        if isCancelled { task.cancel() }
    }

    private func end(_ outcome: OperationOutcome) {
        self.state.withLock { state in
            state.outcome = outcome
            state.endedAt = WallClock.now()
            state.task = nil
        }
        self.accepted.occur()
        self.ended.occur()
    }

    /// The request is valid, and what may take long begins. A client that does not wait gets its answer.
    func accept() {
        self.accepted.occur()
    }

    /// The connection that the operation opens has its key; this accepts the request.
    func connectionCreated(_ key: ConnectionKey) {
        self.state.withLock { $0.connection = key }
        self.accept()
    }

    func cancel() {
        let task = self.state.withLock { state in
            state.isCancelled = true
            return state.task
        }
        task?.cancel()
    }

    var outcome: OperationOutcome? { self.state.withLock { $0.outcome } }

    // MARK: Waiting

    /// - Returns: `nil` if the operation does not finish in time.
    func outcome(within limit: Duration) async -> OperationOutcome? {
        await self.ended.wait(within: limit)
        return self.outcome
    }

    /// Waits until the request is accepted or the operation ends.
    func waitForAcceptance(within limit: Duration) async {
        await self.accepted.wait(within: limit)
    }

    // MARK: The record

    /// Visible to callers who have the scope of the operation.
    func isVisible(to caller: Caller) -> Bool {
        self.operation.scope.required.map { caller.scopes.contains($0) } ?? true
    }

    var record: OperationRecord {
        let (state, outcome) = self.state.withLock { ($0, $0.outcome) }
        var record = OperationRecord()
        record.id = "\(self.number)"
        record.operation = self.operation.name
        record.state = Self.name(of: state)
        record.caller = self.caller.name
        record.startedAt = self.startedAt
        record.connection = state.connection?.description
        guard let outcome else { return record }
        record.endedAt = state.endedAt
        record.status = outcome.status
        record.location = outcome.location
        let body = outcome.body
        guard body.count <= Self.responseLimit else { return record }
        record.answer = try? JSONBody.value(body)
        return record
    }

    private static func name(of state: State) -> String {
        guard let outcome = state.outcome else { return "running" }
        if case .response = outcome { return "succeeded" }
        return state.isCancelled ? "cancelled" : "failed"
    }
}

/// The result of an operation.
enum OperationOutcome: Sendable {
    case response(BufferedResponse)
    case problem(ControlProblem)
    case internalError(any Error)

    static func run(_ work: @Sendable () async throws -> Response) async -> OperationOutcome {
        do {
            return .response(try await BufferedResponse(try await work()))
        } catch let problem as ControlProblem {
            return .problem(problem)
        } catch is CancellationError {
            return .problem(ControlProblem(409, "cancelled", "The operation was cancelled."))
        } catch {
            return .internalError(error)
        }
    }

    /// The response for a client that waited.
    func response() throws -> Response {
        switch self {
        case .response(let buffered): return buffered.response
        case .problem(let problem): throw problem
        case .internalError(let error): throw error
        }
    }

    var status: Int {
        switch self {
        case .response(let buffered): buffered.status.code
        case .problem(let problem): problem.status
        case .internalError: 500
        }
    }

    var location: String? {
        if case .response(let buffered) = self { buffered.headers[.location] } else { nil }
    }

    var body: [UInt8] {
        switch self {
        case .response(let buffered): buffered.body
        case .problem(let problem): problem.json
        case .internalError: ControlProblem.internalError.json
        }
    }
}

/// Runs long requests as operations for clients that prefer not to wait (RFC 7240).
struct LongRunningRequests: Sendable {
    /// Time for the checks of a request, and for a new connection to get its key. Usually they take one turn of a loop.
    private static let acceptanceTimeout = Duration.seconds(2)

    let registry: OperationRegistry

    func run(
        _ call: ControlCall, _ perform: @escaping @Sendable (ControlCall) async throws -> Response
    ) async throws -> Response {
        guard call.operation.isLongRunning, call.prefersAsynchronous || call.waitPreference() != nil else {
            return try await perform(call)
        }
        var call = call
        // Reads the body now, as the connection is used for other requests once this one is answered.
        call.request.body = RequestBody(buffer: try await call.body())
        let running = try self.registry.add(call.operation, by: call.caller)
        call.runningOperation = running
        running.start { [call] in try await perform(call) }
        if let outcome = await Self.earlyOutcome(of: running, call) {
            self.registry.remove(running)
            return try outcome.response()
        }
        return .json(
            running.record, status: .accepted, headers: [.location: "/v1/operations/\(running.number)"])
    }

    /// The outcome within the time that the client waits; for a client that does not wait, only an early refusal.
    private static func earlyOutcome(of running: RunningOperation, _ call: ControlCall) async -> OperationOutcome? {
        if let seconds = call.waitPreference() { return await running.outcome(within: .seconds(seconds)) }
        await running.waitForAcceptance(within: Self.acceptanceTimeout)
        guard case .problem(let problem)? = running.outcome, problem.status < 500 else { return nil }
        return running.outcome
    }
}
