import ControlAPI
import FoundationEssentials
import GatewayCore
import HTTPTransport
import HTTPTypes
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import StreamTransport
import Synchronization

/// One request on its way through an operation.
struct ControlCall: Sendable {
    /// Bytes of body that are read unless the operation says otherwise.
    static let bodyLimit = 1 << 20

    var request: Request
    let context: ControlRequestContext
    let operation: Operation
    let parameters: [String: String]
    let query: Query
    let caller: Caller
    /// Of a request that goes on by itself.
    var runningOperation: RunningOperation?

    // MARK: The body

    /// How long a body may take.
    static let bodyTimeout = Duration.seconds(30)

    /// The whole body.
    /// - Throws: `ControlProblem` 413 above the operation's limit, 408 when it does not come within 30 seconds.
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
            var problem = ControlProblem(
                400, "malformed-body", "The body is not framed as RFC 9112 §6 has it, or ended too early.")
            problem.closesConnection = true
            throw problem
        }
        guard let body else {
            var problem = ControlProblem(408, "body-too-slow", "The body was not there within 30 s.").retryable()
            problem.closesConnection = true
            throw problem
        }
        return body
    }

    /// The media type without its parameters, in lower case; `nil` where none is given.
    var mediaType: String? {
        self.request.headers[.contentType].map { value in
            value.prefix { $0 != ";" }.trimmingSpaces.lowercased()
        }
    }

    /// Bodies are taken as they are.
    /// - Throws: `ControlProblem` 415 for one that is compressed (RFC 9110 §8.4).
    func checkNotCompressed() throws(ControlProblem) {
        let codings = self.request.headers[values: .contentEncoding].flatMap { $0.split(separator: ",") }
        guard codings.allSatisfy({ $0.trimmingSpaces.lowercased() == "identity" }) else {
            throw ControlProblem(415, "unsupported-coding", "The body is compressed; send it as it is.")
        }
    }

    /// The body as JSON; an empty one counts as an object without members.
    /// - Throws: `ControlProblem` with the places of what is wrong.
    func decode<Model: StrictlyRead>(_ type: Model.Type) async throws -> Model {
        try JSONBody.decode(type, from: try await self.jsonBytes())
    }

    /// The body, which is to be JSON.
    func jsonBytes() async throws -> [UInt8] {
        guard self.mediaType == nil || self.mediaType == "application/json" else {
            throw ControlProblem(415, "unsupported-media-type", "Send application/json.")
        }
        try self.checkNotCompressed()
        var buffer = try await self.body()
        return buffer.readBytes(length: buffer.readableBytes) ?? []
    }

    // MARK: Answers

    /// Seconds that the client is willing to wait (RFC 7240 §4.3), at most `limit`; `nil` if it does not say.
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

    /// Whether the client wants no waiting at all (RFC 7240 §4.1).
    var prefersAsynchronous: Bool {
        self.request.headers[values: .prefer].contains { value in
            value.split(separator: ",").contains { $0.trimmingSpaces.lowercased() == "respond-async" }
        }
    }
}

extension StringProtocol {
    /// Without spaces and tabs at its ends.
    var trimmingSpaces: String {
        let start = self.drop { $0 == " " || $0 == "\t" }
        return String(start.reversed().drop { $0 == " " || $0 == "\t" }.reversed())
    }
}

extension ControlCall {
    /// Runs `work` and cancels it when the client goes away: what nobody would read must not be taken.
    func cancellingOnDisconnect<Value: Sendable>(_ work: @escaping @Sendable () async throws -> Value) async throws
        -> Value
    {
        let gone = try await self.clientDisconnect()
        return try await withThrowingTaskGroup(of: Value?.self) { group in
            group.addTask { try await work() }
            group.addTask {
                await gone.wait()
                return nil
            }
            defer { group.cancelAll() }
            guard let value = try await group.next() ?? nil else { throw CancellationError() }
            return value
        }
    }

    /// The handler that knows.
    func upgradableWire() async throws -> UpgradableWire.Reference {
        try await self.context.channel.eventLoop.submit {
            UpgradableWire.Reference(
                try self.context.channel.pipeline.syncOperations.handler(type: UpgradableWire.self))
        }.get()
    }

    func clientDisconnect() async throws -> ClientDisconnect {
        ClientDisconnect(try await self.upgradableWire().clientGone)
    }
}

/// What every resource works with.
final class ControlContext: Sendable {
    let gateway: Gateway
    let configuration: RunningConfiguration
    let version: String
    let logger: Logger
    let anchor: TimeAnchor
    /// Who may do what, and where to.
    let access: CurrentAccess
    let limiter: RequestLimiter
    /// For WebSockets of the control plane itself: none of the gateway's loops is to carry them.
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
            targets: TransferTargets { access.current.targets }, journal: gateway.eventLog
        ) {
            loop.system.now()
        }
        let now = gateway.loops.first?.system.now() ?? MonotonicInstant(nanoseconds: 0)
        self.anchor = TimeAnchor(instant: now, milliseconds: Machine.wallClockMilliseconds())
    }

    /// Where connections opened by command may lead.
    var targets: TargetRules { self.access.current.targets }

    /// The loops' clock, from any thread.
    var now: MonotonicInstant { self.gateway.loops.first?.system.now() ?? self.anchor.instant }

    var phase: ServicePhase {
        get { self.currentPhase.withLock { $0 } }
        set { self.currentPhase.withLock { $0 = newValue } }
    }
}

/// What belongs to one request beside the request itself.
struct ControlRequestContext: RequestContext {
    var coreContext: CoreRequestContextStorage
    /// The connection that it came by.
    let channel: any Channel

    init(source: ApplicationRequestContextSource) {
        self.coreContext = CoreRequestContextStorage(source: source)
        self.channel = source.channel
    }
}

/// Answers a waiting caller once, whoever comes first.
final class OneShotContinuation: Sendable {
    private let waiting: Mutex<CheckedContinuation<Bool, Never>?>

    init(_ continuation: CheckedContinuation<Bool, Never>) {
        self.waiting = Mutex(continuation)
    }

    func resume(returning value: Bool) {
        self.waiting.withLock { $0.take() }?.resume(returning: value)
    }
}

/// The moment in which a client goes away, to be waited for by one at a time; the wait can be cancelled.
final class ClientDisconnect: Sendable {
    private struct State {
        var isOver = false
        var waiting: CheckedContinuation<Void, Never>?
    }

    private let state = Mutex(State())

    init(_ future: EventLoopFuture<Void>) {
        future.whenComplete { [weak self] _ in self?.finish() }
    }

    /// - Returns: whether the client is gone; `false` when the wait was cancelled.
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

/// Waits with a bound.
enum Waiting {
    /// Runs `work`, which must heed cancellation, and cancels it when the time is over.
    /// - Returns: what it gave, even if that came just at the end; `nil` if it gave nothing in time.
    /// - Throws: what `work` throws before the end.
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
            // Cancelled, the work may still have come to its end; what it gave must not be lost.
            guard case .success(let late)? = await group.nextResult() else { return nil }
            return late
        }
    }

    /// Waits for somebody to call back who may never do so.
    /// - Returns: whether that happened in time.
    static func forCallback(within limit: Duration, _ begin: (@escaping @Sendable () -> Void) -> Void) async -> Bool {
        await withCheckedContinuation { (continuation: CheckedContinuation<Bool, Never>) in
            let box = OneShotContinuation(continuation)
            begin { box.resume(returning: true) }
            Task {
                try? await Task.sleep(for: limit)
                box.resume(returning: false)
            }
        }
    }
}

extension Waiting {
    /// Waits for `work`, which goes on when the time is over.
    /// - Returns: `nil` when the time was over first.
    static func forResult<Value: Sendable>(
        within limit: Duration, _ work: @escaping @Sendable () async -> Value
    ) async -> Value? {
        let running = Task { await work() }
        let isDone = await self.forCallback(within: limit) { answer in
            Task {
                _ = await running.value
                answer()
            }
        }
        return isDone ? await running.value : nil
    }
}
