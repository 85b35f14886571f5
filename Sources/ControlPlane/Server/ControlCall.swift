import ControlAPI
import GatewayConfiguration
import GatewayCore
import HTTPTypes
import HummingbirdCore
import Logging
import NIOCore
import StreamTransport
import Synchronization

/// One authorized request, as the handler of its operation sees it.
struct ControlCall: Sendable {
    /// Longest body in bytes, unless the operation sets another limit.
    static let bodyLimit = 1 << 20
    private static let bodyTimeout = Duration.seconds(30)

    var request: Request
    /// The request's connection.
    let channel: any Channel
    let operation: Operation
    let parameters: [String: String]
    let query: Query
    let caller: Caller
    /// Set for a request that runs without its client waiting.
    var runningOperation: RunningOperation?

    // MARK: The body

    /// Reads the whole body.
    /// - Throws: `ControlProblem` 413 above the operation's limit, 408 when it takes longer than 30 seconds.
    func body() async throws -> ByteBuffer {
        let request = self.request
        let limit = self.operation.bodyLimit
        let body: ByteBuffer?
        do {
            body = try await Waiting.withTimeout(Self.bodyTimeout) { try await request.body.collect(upTo: limit) }
        } catch is NIOTooManyBytesError {
            throw ControlProblem.bodyTooLarge(limit)
        } catch is CancellationError {
            throw CancellationError()
        } catch {
            throw ControlProblem(
                400, "malformed-body", "The body's framing violates RFC 9112 §6, or the body ended too early."
            ).closing
        }
        guard let body else {
            throw ControlProblem(408, "body-too-slow", "The body did not arrive within 30 s.").retryable().closing
        }
        return body
    }

    /// The media type without its parameters, in lower case.
    var mediaType: String? {
        self.request.headers[.contentType].map { value in
            value.prefix { $0 != ";" }.trimmingSpaces.lowercased()
        }
    }

    /// - Throws: `ControlProblem` 415 for a compressed body (RFC 9110 §8.4).
    func checkNotCompressed() throws(ControlProblem) {
        let codings = self.request.headers[values: .contentEncoding].flatMap { $0.split(separator: ",") }
        guard codings.allSatisfy({ $0.trimmingSpaces.lowercased() == "identity" }) else {
            throw ControlProblem(415, "unsupported-coding", "The body is compressed; send it uncompressed.")
        }
    }

    /// Decodes the JSON body; an empty body counts as an empty object.
    /// - Throws: `ControlProblem` with pointers to the invalid members.
    func decode<Model: StrictDecodable>(_ type: Model.Type) async throws -> Model {
        try JSONBody.decode(type, from: try await self.jsonBytes())
    }

    /// Reads a body that must be of type JSON.
    func jsonBytes() async throws -> [UInt8] {
        guard self.mediaType == nil || self.mediaType == "application/json" else {
            throw ControlProblem(415, "unsupported-media-type", "Send application/json.")
        }
        try self.checkNotCompressed()
        var buffer = try await self.body()
        return buffer.readBytes(length: buffer.readableBytes) ?? []
    }

    // MARK: Preferences

    /// Seconds of the `wait` preference (RFC 7240 §4.3), at most `limit`.
    func waitPreference(limit: Int = 60) -> Int? {
        for value in self.request.headers[values: .prefer] {
            for piece in value.split(separator: ",") {
                let pair = piece.split(separator: "=").map(\.trimmingSpaces)
                if pair.count == 2, pair[0].lowercased() == "wait", let seconds = Int(pair[1]), seconds >= 0 {
                    return min(seconds, limit)
                }
            }
        }
        return nil
    }

    /// Whether the client sent the `respond-async` preference (RFC 7240 §4.1).
    var prefersAsynchronous: Bool {
        self.request.headers[values: .prefer].contains { value in
            value.split(separator: ",").contains { $0.trimmingSpaces.lowercased() == "respond-async" }
        }
    }

    // MARK: The connection

    /// Runs `work` and cancels it when the client disconnects, so that no message is received and lost.
    func cancellingOnDisconnect<Value: Sendable>(_ work: @escaping @Sendable () async throws -> Value) async throws
        -> Value
    {
        let disconnect = try await self.clientDisconnect()
        return try await withThrowingTaskGroup(of: Value?.self) { group in
            group.addTask { try await work() }
            group.addTask {
                await disconnect.wait()
                return nil
            }
            defer { group.cancelAll() }
            guard let value = try await group.next() ?? nil else { throw CancellationError() }
            return value
        }
    }

    /// The channel handler that detects disconnects and hands the connection over.
    func upgradableWire() async throws -> UpgradableWire.Reference {
        try await self.channel.eventLoop.submit {
            UpgradableWire.Reference(
                try self.channel.pipeline.syncOperations.handler(type: UpgradableWire.self))
        }.get()
    }

    func clientDisconnect() async throws -> ClientDisconnect {
        ClientDisconnect(try await self.upgradableWire().clientGone)
    }
}

extension StringProtocol {
    /// Without spaces and tabs at both ends.
    var trimmingSpaces: String {
        let start = self.drop { $0 == " " || $0 == "\t" }
        return String(start.reversed().drop { $0 == " " || $0 == "\t" }.reversed())
    }
}

/// The dependencies shared by all resources.
final class ControlContext: Sendable {
    let gateway: Gateway
    let configuration: RunningConfiguration
    let version: String
    let logger: Logger
    let anchor: TimeAnchor
    let access: CurrentAccess
    let limiter: RequestLimiter
    /// Runs the control plane's own WebSockets, which must not load the gateway's loops.
    let loop: Loop
    let requestMetrics = RequestMetrics()
    let transfers: TransferRegistry
    let operations = OperationRegistry()
    private let currentPhase = Mutex(ServicePhase.starting)

    init(
        gateway: Gateway, settings: ControlSettings, configuration: RunningConfiguration, version: String,
        logger: Logger, loop: Loop
    ) {
        let access = CurrentAccess(settings)
        self.access = access
        self.limiter = RequestLimiter(limit: settings.maximumRequests, rate: settings.requestRate)
        self.loop = loop
        self.gateway = gateway
        self.configuration = configuration
        self.version = version
        self.logger = logger
        self.transfers = TransferRegistry(
            targets: TransferTargets { access.current.targets }, eventLog: gateway.eventLog
        ) {
            loop.system.now()
        }
        let now = gateway.loops.first?.system.now() ?? MonotonicInstant(nanoseconds: 0)
        self.anchor = TimeAnchor(instant: now, milliseconds: Machine.wallClockMilliseconds())
    }

    /// Targets to which the control plane may open connections.
    var targets: TargetRules { self.access.current.targets }

    /// The loops' clock. From any thread.
    var now: MonotonicInstant { self.gateway.loops.first?.system.now() ?? self.anchor.instant }

    var phase: ServicePhase {
        get { self.currentPhase.withLock { $0 } }
        set { self.currentPhase.withLock { $0 = newValue } }
    }
}

/// A continuation that several parties may resume; the first one wins.
final class OneShotContinuation: Sendable {
    private let waiting: Mutex<CheckedContinuation<Bool, Never>?>

    init(_ continuation: CheckedContinuation<Bool, Never>) {
        self.waiting = Mutex(continuation)
    }

    func resume(returning value: Bool) {
        self.waiting.withLock { $0.take() }?.resume(returning: value)
    }
}

/// Waits for the client's disconnect. One task at a time may wait.
final class ClientDisconnect: Sendable {
    private struct State {
        var isOver = false
        var waiting: CheckedContinuation<Void, Never>?
    }

    private let state = Mutex(State())

    init(_ future: EventLoopFuture<Void>) {
        future.whenComplete { [weak self] _ in self?.finish() }
    }

    /// - Returns: `true` when the client has disconnected, `false` when the wait was cancelled.
    @discardableResult
    func wait() async -> Bool {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isDone = self.state.withLock { state in
                    let isDone = state.isOver || Task.isCancelled
                    if !isDone { state.waiting = continuation }
                    return isDone
                }
                if isDone { continuation.resume() }
            }
        } onCancel: {
            self.state.withLock { $0.waiting.take() }?.resume()
        }
        return self.state.withLock { $0.isOver }
    }

    private func finish() {
        let waiting = self.state.withLock { state in
            state.isOver = true
            return state.waiting.take()
        }
        waiting?.resume()
    }
}

/// Waits with a timeout.
enum Waiting {
    /// Runs `work`, which must react to cancellation, and cancels it at the timeout.
    /// - Returns: its result, even if it arrives during cancellation; `nil` on timeout.
    /// - Throws: what `work` throws before the timeout.
    static func withTimeout<Value: Sendable>(
        _ limit: Duration, _ work: @escaping @Sendable () async throws -> Value
    ) async throws -> Value? {
        try await withThrowingTaskGroup(of: Value?.self) { group in
            group.addTask { try await work() }
            group.addTask {
                try? await Task.sleep(for: limit)
                return nil
            }
            let first = try await group.next() ?? nil
            group.cancelAll()
            if let first { return first }
            // Work that completes despite cancellation must not lose its result.
            guard case .success(let late)? = await group.nextResult() else { return nil }
            return late
        }
    }

    /// Waits for a callback that may never come.
    /// - Returns: whether it arrived in time.
    static func forCallback(within limit: Duration, _ begin: (@escaping @Sendable () -> Void) -> Void) async -> Bool {
        await withCheckedContinuation { (continuation: CheckedContinuation<Bool, Never>) in
            let reply = OneShotContinuation(continuation)
            begin { reply.resume(returning: true) }
            Task {
                try? await Task.sleep(for: limit)
                reply.resume(returning: false)
            }
        }
    }

    /// Evaluates `condition` repeatedly until it holds, the time is over or the task is cancelled.
    /// - Returns: whether the condition holds.
    @discardableResult
    static func poll(within limit: Duration, until condition: () async -> Bool) async -> Bool {
        let deadline = ContinuousClock.now.advanced(by: limit)
        var pause = Duration.milliseconds(1)
        while !(await condition()) {
            guard ContinuousClock.now < deadline, (try? await Task.sleep(for: pause)) != nil else { return false }
            pause = min(pause * 2, .milliseconds(50))
        }
        return true
    }

    /// Waits for `work`, which continues to run after the timeout.
    /// - Returns: `nil` on timeout.
    static func forResult<Value: Sendable>(
        within limit: Duration, _ work: @escaping @Sendable () async -> Value
    ) async -> Value? {
        let running = Task { await work() }
        let isDone = await self.forCallback(within: limit) { done in
            Task {
                _ = await running.value
                done()
            }
        }
        return isDone ? await running.value : nil
    }
}
