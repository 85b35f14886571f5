import ControlAPI
import GatewayConfiguration
import GatewayCore
import HTTPTypes
import HummingbirdCore
import Logging
import NIOCore
import StreamTransport
import Synchronization
import WireText

/// One authorized request, as the handler of its operation sees it.
struct ControlCall: Sendable {
    /// Longest body in bytes, unless the operation sets another limit.
    static let bodyLimit = 1 << 20
    private static let bodyTimeout = Duration.seconds(30)

    var request: Request
    /// The request's connection; `nil` for a request that another node forwards.
    let channel: (any Channel)?
    let operation: Operation
    var parameters: [String: String]
    var query: Query
    let caller: Caller
    /// The node that forwards the request.
    var forwardedBy: String?
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
            value.prefix { $0 != ";" }.trimmingBlanks.lowercased()
        }
    }

    /// - Throws: `ControlProblem` 415 for a compressed body (RFC 9110 §8.4).
    func checkNotCompressed() throws(ControlProblem) {
        guard self.request.headers.elements(.contentEncoding).allSatisfy({ $0 == "identity" }) else {
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
        let bytes = buffer.readBytes(length: buffer.readableBytes) ?? []
        // A byte order mark is ignored (RFC 8259 §8.1).
        return bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? Array(bytes.dropFirst(3)) : bytes
    }

    // MARK: Preferences

    /// Seconds of the `wait` preference (RFC 7240 §4.3), at most `limit`.
    func waitPreference(limit: Int = 60) -> Int? {
        for preference in self.request.headers.elements(.prefer) {
            let pair = preference.split(separator: "=").map(\.trimmingBlanks)
            if pair.count == 2, pair[0] == "wait", let seconds = Int(pair[1]), seconds >= 0 {
                return min(seconds, limit)
            }
        }
        return nil
    }

    /// Whether the client sent the `respond-async` preference (RFC 7240 §4.1).
    var prefersAsynchronous: Bool {
        self.request.headers.elements(.prefer).contains("respond-async")
    }

    // MARK: The connection

    /// Runs `work` and cancels it when the client disconnects, so that no message is received and lost.
    func cancellingOnDisconnect<Value: Sendable>(_ work: @escaping @Sendable () async throws -> Value) async throws
        -> Value
    {
        guard self.channel != nil else {
            // The node that forwards the request withdraws it when the client disconnects, or at its timeout: the task is
            // cancelled then.
            do {
                let value = try await work()
                try Task.checkCancellation()
                return value
            } catch {
                throw Task.isCancelled ? CancellationError() : error
            }
        }
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
        guard let channel = self.channel else { throw ControlProblem.notForwarded }
        return try await channel.eventLoop.submit {
            UpgradableWire.Reference(
                wire: try channel.pipeline.syncOperations.handler(type: UpgradableWire.self))
        }.get()
    }

    /// Occurs when the client has disconnected.
    func clientDisconnect() async throws -> OneTimeEvent {
        let event = OneTimeEvent()
        try await self.upgradableWire().clientGone.whenComplete { [weak event] _ in event?.occur() }
        return event
    }
}

extension HTTPFields {
    /// The elements of a list (RFC 9110 §5.6.1), in lower case.
    func elements(_ name: HTTPField.Name) -> [String] {
        self[values: name].flatMap { $0.split(separator: ",").map { $0.trimmingBlanks.lowercased() } }
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
    /// The control plane stops: streams that would last end.
    let stopping = OneTimeEvent()
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

    var hub: RoomHub { self.gateway.rooms.hub }

    /// The other nodes; `nil` without a cluster.
    var cluster: GatewayCluster? { self.gateway.cluster }

    /// The name of this node; `nil` without a cluster.
    var node: String? { self.cluster?.nodeName }

    /// The loops' clock. From any thread.
    var now: MonotonicInstant { self.gateway.loops.first?.system.now() ?? self.anchor.instant }

    var phase: ServicePhase {
        get { self.currentPhase.withLock { $0 } }
        set { self.currentPhase.withLock { $0 = newValue } }
    }
}
