import ControlAPI
import FoundationEssentials
import GatewayConfiguration
import GatewayCore
import HTTPTypes
import Hummingbird
import HummingbirdCore
import SessionTasks
import StreamTransport

/// What can be done to a connection is what can be done to its task.
extension ConnectionsResource {
    /// Bytes of a body that is sent on.
    static let sendLimit = 16 << 20

    // MARK: Send

    /// JSON with `text` or `data`; a body of another type is sent as it is: `text/plain` as text.
    private func payload(_ call: ControlCall) async throws -> (SendPayload, timeout: Duration) {
        let standard = Duration.seconds(10)
        try call.checkNotCompressed()
        switch call.mediaType {
        case nil, "application/json": break
        case "text/plain":
            let buffer = try await call.body()
            guard let text = String(validating: buffer.readableBytesView, as: UTF8.self) else {
                throw ControlProblem(422, "invalid-value", "Text must be UTF-8.")
            }
            return (.text(text), standard)
        case "application/octet-stream": return (.data(Array(try await call.body().readableBytesView)), standard)
        default:
            throw ControlProblem(
                415, "unsupported-media-type", "Send application/json, text/plain or application/octet-stream.")
        }
        let request = try await call.decode(SendRequest.self)
        let timeout = try OpenRequestParser.duration(request.timeoutMs, "/timeoutMs", in: 0...600_000) ?? standard
        switch (request.text, request.data) {
        case (let text?, nil): return (.text(text), timeout)
        case (nil, let data?):
            guard let bytes = Data(base64Encoded: data) else {
                throw ControlProblem.invalid("/data", "data must be base64 (RFC 4648 §4).")
            }
            return (.data([UInt8](bytes)), timeout)
        default: throw ControlProblem.invalid("/text", "Give either text or data.")
        }
    }

    func send(_ call: ControlCall) async throws -> Response {
        let live = try await self.liveConnection(call)
        let link = try self.endpoint(of: live)
        let (payload, timeout) = try await self.payload(call)
        let key = live.report.key
        let send = QueuedSend()
        let place = await send.enqueue(payload, on: link)
        guard place.isAccepted else { throw Self.queueFull(place) }
        let isSent: Bool
        do throws(TaskFailure) {
            // Not withdrawn when the time is over: what has begun goes out whole. Nothing goes out of a suspended one.
            isSent = try await send.wait(within: place.isSuspended ? .zero : timeout)
        } catch {
            throw await self.problem(error, key)
        }
        var answer = SendAnswer(
            state: isSent ? "sent" : "queued", sizeBytes: payload.count, queuedSendBytes: 0,
            suspended: place.isSuspended)
        if case .live(let live) = await self.gateway.find(key) {
            answer.queuedSendBytes = live.report.queuedSendBytes
            answer.suspended = live.report.isSuspended
        }
        return .json(answer)
    }

    private static func queueFull(_ place: QueuedSend.EnqueueResult) -> ControlProblem {
        let waiting = "\(place.queuedBytes) bytes wait to be sent"
        guard place.isSuspended else {
            return ControlProblem(
                429, "peer-buffer-full", "\(waiting), as the peer does not take them; try again later."
            )
            .retryable(after: 1)
        }
        return ControlProblem(
            429, "peer-buffer-full", "The connection is suspended, and \(waiting); resume it first.")
    }

    // MARK: Receive

    func receive(_ call: ControlCall) async throws -> Response {
        let key = try self.key(call)
        let wanted = try await self.wantedOfReceiving(call)
        let timeout =
            try OpenRequestParser.duration(wanted.timeoutMs, "/timeoutMs", in: 0...600_000)
            ?? call.waitPreference(limit: 600).map { .seconds($0) } ?? .seconds(30)
        let link: RelayEndpoint
        if let task = await self.gateway.unreadSession(key) {
            link = .webSocket(task)
        } else {
            let live = try await self.liveConnection(call)
            guard !live.report.isRelayed else {
                throw ControlProblem(
                    409, "relayed", "What this connection receives is passed on; /tap gives a copy.")
            }
            link = try self.endpoint(of: live)
        }
        switch link {
        case .webSocket(let task):
            guard wanted.minimumBytes == nil, wanted.maximumBytes == nil else {
                throw ControlProblem.invalid(
                    "/maximumBytes", "A WebSocket gives one whole message; leave the lengths out.")
            }
            return try await self.receive(from: task, key, call, within: timeout)
        case .stream(let task):
            let maximum = wanted.maximumBytes ?? 64 << 10
            let minimum = wanted.minimumBytes ?? 1
            guard (1...(1 << 20)).contains(maximum), (0...maximum).contains(minimum) else {
                throw ControlProblem.invalid(
                    "/maximumBytes", "maximumBytes must be from 1 to 1048576, and minimumBytes not above it.")
            }
            return try await self.receive(from: task, key, call, minimum...maximum, within: timeout)
        }
    }

    /// From the body, or the query where that says nothing.
    private func wantedOfReceiving(_ call: ControlCall) async throws -> ReceiveRequest {
        var wanted = try await call.decode(ReceiveRequest.self)
        let most = 1 << 20
        if wanted.minimumBytes == nil { wanted.minimumBytes = try call.query.integer("minimumBytes", in: 0...most) }
        if wanted.maximumBytes == nil { wanted.maximumBytes = try call.query.integer("maximumBytes", in: 1...most) }
        if wanted.timeoutMs == nil {
            wanted.timeoutMs = try call.query.integer("timeoutMs", in: 0...600_000).map { Double($0) }
        }
        return wanted
    }

    private func receive(
        from task: WebSocketTask, _ key: ConnectionKey, _ call: ControlCall, within timeout: Duration
    ) async throws -> Response {
        let message: WebSocketTask.Message?
        do {
            message = try await call.cancellingOnDisconnect {
                try await Waiting.withTimeout(timeout) { try await task.receive() }
            }
        } catch let failure as TaskFailure {
            throw await self.problem(failure, key)
        }
        switch message {
        case nil: return .noContent
        case .string(let text)?: return .json(Received(type: "text", text: text, sizeBytes: text.utf8.count))
        case .data(let bytes)?:
            return .json(Received(type: "data", data: Data(bytes).base64EncodedString(), sizeBytes: bytes.count))
        }
    }

    private func receive(
        from task: StreamTask, _ key: ConnectionKey, _ call: ControlCall, _ lengths: ClosedRange<Int>,
        within timeout: Duration
    ) async throws -> Response {
        let chunk: StreamTask.Chunk?
        do {
            chunk = try await call.cancellingOnDisconnect {
                try await Waiting.withTimeout(timeout) {
                    try await task.read(minimum: lengths.lowerBound, maximum: lengths.upperBound)
                }
            }
        } catch let failure as TaskFailure {
            throw await self.problem(failure, key)
        }
        guard let chunk else { return .noContent }
        return .json(
            Received(
                type: "data", data: Data(chunk.bytes).base64EncodedString(), sizeBytes: chunk.bytes.count,
                isAtEnd: chunk.isAtEnd))
    }

    // MARK: Ping

    func ping(_ call: ControlCall) async throws -> Response {
        let live = try await self.liveConnection(call)
        guard case .webSocket(let task) = try self.endpoint(of: live) else { throw Self.notAWebSocket }
        guard !live.report.isSuspended else {
            throw ControlProblem(409, "suspended", "The connection is suspended, and sends no Ping; resume it first.")
        }
        do {
            let answered: Void? = try await Waiting.withTimeout(.seconds(10)) { try await task.sendPing() }
            guard answered != nil else {
                throw ControlProblem(504, "timed-out", "No Pong came within 10 s.").retryable()
            }
        } catch let failure as TaskFailure {
            throw await self.problem(failure, live.report.key)
        }
        guard case .live(let after) = await self.gateway.find(live.report.key),
            let last = after.report.roundTrips?.last
        else { return .json(PingAnswer(rttMs: 0)) }
        return .json(PingAnswer(rttMs: Double(last.wholeMicroseconds) / 1000))
    }

    static let notAWebSocket = ControlProblem(409, "not-a-websocket", "Only a WebSocket has this verb.")
    static let notAStream = ControlProblem(
        409, "not-a-stream", "Only a stream has this verb; a WebSocket ends as a whole.")

    // MARK: Half-close and TLS

    private func ownStream(_ call: ControlCall) async throws -> (StreamTask, ConnectionReport) {
        let live = try await self.liveConnection(call)
        guard case .stream(let task) = try self.endpoint(of: live) else { throw Self.notAStream }
        guard !live.report.isRelayed else {
            throw ControlProblem(
                409, "relayed", "The connection belongs to its relay, which ends its directions itself.")
        }
        return (task, live.report)
    }

    func closeRead(_ call: ControlCall) async throws -> Response {
        let (task, report) = try await self.ownStream(call)
        guard !report.isInputClosed else { throw ControlProblem(TaskFailure.directionClosed) }
        task.closeRead()
        return try await self.connectionResponse(report.key)
    }

    func closeWrite(_ call: ControlCall) async throws -> Response {
        let (task, report) = try await self.ownStream(call)
        guard !report.isOutputClosed else { throw ControlProblem(TaskFailure.directionClosed) }
        task.closeWrite()
        return try await self.connectionResponse(report.key)
    }

    func startSecureConnection(_ call: ControlCall) async throws -> Response {
        let (task, report) = try await self.ownStream(call)
        let wanted = try await call.decode(TLSRequest.self)
        guard report.record?.read({ $0.tls }) == nil else {
            throw ControlProblem(409, "state-conflict", "The connection is secure already.")
        }
        let context = try TLSRequestParser(wanted, speaksWebSocket: false, pointer: "").context()
        var settings = SecureSettings(context: context, serverName: wanted.serverName ?? Self.host(of: report.url))
        settings.timeout =
            try OpenRequestParser.duration(wanted.timeoutMs, "/timeoutMs", in: 1...600_000) ?? .seconds(10)
        do throws(TaskFailure) {
            try await task.startSecureConnection(settings)
        } catch {
            throw await self.problem(error, report.key)
        }
        var event = GatewayEvent(.upgraded)
        event.connection = report.key
        event.url = report.url
        event.reason = "tls"
        self.gateway.eventLog?.publish(event)
        return try await self.connectionResponse(report.key)
    }

    private static func host(of url: String?) -> String? {
        url.flatMap { try? EndpointURL($0) }?.hostName
    }

    // MARK: Suspension

    func suspend(_ call: ControlCall) async throws -> Response {
        try await self.steer(call) { link in
            switch link {
            case .stream(let task): if task.record.state != .suspended { task.suspendOnLoop() }
            case .webSocket(let task): task.suspendOnLoop()
            }
        }
    }

    func resume(_ call: ControlCall) async throws -> Response {
        try await self.steer(call) { link in
            switch link {
            case .stream(let task): task.resumeOnLoop()
            case .webSocket(let task): task.resumeOnLoop()
            }
        }
    }

    private func steer(_ call: ControlCall, _ body: @escaping @Sendable (RelayEndpoint) -> Void) async throws
        -> Response
    {
        let live = try await self.liveConnection(call)
        let link = try self.endpoint(of: live)
        guard live.report.stage != .opening else {
            throw ControlProblem(409, "still-opening", "The connection is still being opened; try again soon.")
                .retryable(after: 1)
        }
        await link.onLoop(body)
        return try await self.connectionResponse(live.report.key)
    }
}
