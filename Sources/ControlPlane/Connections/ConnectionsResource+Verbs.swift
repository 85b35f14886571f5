import ControlAPI
import GatewayConfiguration
import GatewayCore
import HTTPTypes
import HummingbirdCore
import NIOCore
import SessionTasks
import WireText

/// The operations on the task of a connection.
extension ConnectionsResource {
    /// Longest body of a `send` request in bytes.
    static let sendLimit = 16 << 20

    var taskVerbs: [Operation] {
        [
            Operation("send", .post, Self.one + ":send", .operate, Self.sendDocument, bodyLimit: Self.sendLimit) {
                try await self.send($0)
            },
            Operation("receive", .post, Self.one + ":receive", .operate, Self.receiveDocument) {
                try await self.receive($0)
            },
            Operation(
                "ping", .post, Self.one + ":ping", .operate,
                OperationDocument(
                    "Pings a WebSocket", responses: [.init(200, "The round-trip time", .json(PingAnswer.self))],
                    problems: [404, 409, 410, 502, 504]), isLongRunning: true
            ) { try await self.ping($0) },
            Operation(
                "startSecureConnection", .post, Self.one + ":startSecureConnection", .operate,
                OperationDocument(
                    "Starts TLS on a stream", body: [.json(TLSRequest.self)],
                    responses: [.init(200, "The current state", .json(Connection.self))],
                    problems: [404, 409, 410, 502, 504]), isLongRunning: true
            ) { try await self.startSecureConnection($0) },
            self.verb("closeRead", "Closes a stream for reading") { try await self.closeRead($0) },
            self.verb("closeWrite", "Closes a stream for writing, after queued data") { try await self.closeWrite($0) },
            self.verb(
                "suspend",
                "Suspends reading, sending and Pings until the connection is resumed; `send` queues up to 4 MiB, and data that a tunnel relays is still sent"
            ) { try await self.suspend($0) },
            self.verb("resume", "Resumes reading and sending") { try await self.resume($0) },
        ]
    }

    /// A verb without a body; responds with the connection.
    private func verb(_ name: String, _ summary: String, _ handler: @escaping Operation.Handler) -> Operation {
        Operation(
            name, .post, Self.one + ":\(name)", .operate,
            OperationDocument(
                summary, responses: [.init(200, "The current state", .json(Connection.self))],
                problems: [404, 409, 410]), handler)
    }

    // MARK: Send

    private static let sendDocument = OperationDocument(
        "Sends one message of a WebSocket, or bytes of a stream",
        body: [.json(SendRequest.self), .text("text/plain", example: "hello"), .bytes("application/octet-stream")],
        isBodyRequired: true,
        responses: [.init(200, "Sent, or queued on a suspended connection", .json(SendAnswer.self))],
        problems: [404, 409, 410, 429, 502, 504])

    /// Reads JSON with `text` or `data`, or the payload itself: `text/plain` or `application/octet-stream`.
    private func payload(_ call: ControlCall) async throws -> (SendPayload, timeout: Duration) {
        let defaultTimeout = Duration.seconds(10)
        try call.checkNotCompressed()
        switch call.mediaType {
        case nil, "application/json": break
        case "text/plain":
            let buffer = try await call.body()
            guard let text = String(validating: buffer.readableBytesView, as: UTF8.self) else {
                throw ControlProblem(422, "invalid-value", "Text must be UTF-8.")
            }
            return (.text(text), defaultTimeout)
        case "application/octet-stream":
            return (.data(Array(try await call.body().readableBytesView)), defaultTimeout)
        default:
            throw ControlProblem(
                415, "unsupported-media-type", "Send application/json, text/plain or application/octet-stream.")
        }
        let request = try await call.decode(SendRequest.self)
        let timeout = OpenRequestParser.duration(request.timeoutMs) ?? defaultTimeout
        switch (request.text, request.data) {
        case (let text?, nil): return (.text(text), timeout)
        case (nil, let data?):
            guard let bytes = Base64.decoded(data.utf8) else {
                throw ControlProblem.invalid("/data", "data must be base64 (RFC 4648 §4).")
            }
            return (.data(bytes), timeout)
        default: throw ControlProblem.invalid("/text", "Give either text or data.")
        }
    }

    func send(_ call: ControlCall) async throws -> Response {
        let live = try await self.liveConnection(call)
        let endpoint = try self.endpoint(of: live)
        let (payload, timeout) = try await self.payload(call)
        let key = live.report.key
        let send = QueuedSend()
        let enqueued = await send.enqueue(payload, on: endpoint)
        guard enqueued.isAccepted else { throw Self.queueFull(enqueued) }
        let isSent: Bool
        do throws(TaskFailure) {
            // After the timeout the message stays queued. A suspended connection sends nothing.
            isSent = try await send.wait(within: enqueued.isSuspended ? .zero : timeout)
        } catch {
            throw await self.problem(error, key)
        }
        var result = SendAnswer {
            $0.state = isSent ? "sent" : "queued"
            $0.sizeBytes = payload.count
            $0.suspended = enqueued.isSuspended
        }
        if case .live(let live) = await self.gateway.find(key) {
            result.queuedSendBytes = live.report.queuedSendBytes
            result.suspended = live.report.isSuspended
        }
        return .json(result)
    }

    private static func queueFull(_ queue: QueuedSend.EnqueueResult) -> ControlProblem {
        guard queue.isSuspended else {
            return ControlProblem(
                429, "peer-buffer-full",
                "\(queue.queuedBytes) bytes are queued, as the peer does not read; try again later."
            )
            .retryable(after: 1)
        }
        return ControlProblem(
            429, "peer-buffer-full",
            "The connection is suspended and \(queue.queuedBytes) bytes are queued; resume it first.")
    }

    // MARK: Receive

    private static let receiveDocument = OperationDocument(
        "Waits for the next message, or bytes of a stream, and takes them",
        parameters: [
            "minimumBytes": .integer(0...1_048_576, Self.sameAsMember, example: 1),
            "maximumBytes": .integer(1...1_048_576, Self.sameAsMember, example: 65_536),
            "timeoutMs": .integer(0...600_000, Self.sameAsMember, example: 5000),
        ], headers: ["Prefer": "wait=N: waits N seconds without timeoutMs (RFC 7240)."],
        body: [.json(ReceiveRequest.self)],
        responses: [.init(200, "The received data", .json(Received.self)), .init(204, "Nothing received in time")],
        problems: [404, 409, 410, 413, 502, 504])

    private static let sameAsMember = "Same as the member of the body, which takes precedence."

    func receive(_ call: ControlCall) async throws -> Response {
        let key = try self.key(call)
        let (request, timeout) = try await ReceiveRequest.read(call)
        let bounds = AnswerBounds(call, self.context.cluster)
        let endpoint: RelayEndpoint
        if let task = await self.gateway.unreadSession(key) {
            endpoint = .webSocket(task)
        } else {
            let live = try await self.liveConnection(call)
            guard !live.report.isRelayed else {
                throw ControlProblem(
                    409, "relayed", "The connection belongs to a tunnel; /tap gives a copy of its data.")
            }
            endpoint = try self.endpoint(of: live)
        }
        switch endpoint {
        case .webSocket(let task):
            guard request.minimumBytes == nil, request.maximumBytes == nil else {
                throw ControlProblem.invalid(
                    "/maximumBytes", "A WebSocket returns one whole message; leave out the lengths.")
            }
            return try await self.receive(from: task, key, call, bounds, within: timeout)
        case .stream(let task):
            let maximum = request.maximumBytes ?? 64 << 10
            let minimum = request.minimumBytes ?? 1
            guard (1...(1 << 20)).contains(maximum), (0...maximum).contains(minimum) else {
                throw ControlProblem.invalid(
                    "/maximumBytes", "maximumBytes must be from 1 to 1048576, and minimumBytes not above it.")
            }
            let limit = min(maximum, bounds?.chunkLimit ?? maximum)
            if let bounds, minimum > limit { throw bounds.chunkTooLarge }
            return try await self.receive(from: task, key, call, minimum...limit, within: timeout)
        }
    }

    private func receive(
        from task: WebSocketTask, _ key: ConnectionKey, _ call: ControlCall, _ bounds: AnswerBounds?,
        within timeout: Duration
    ) async throws -> Response {
        let message: WebSocketTask.Message?
        do {
            message = try await call.cancellingOnDisconnect {
                try await Waiting.withTimeout(timeout) {
                    guard let bounds else { return try await task.receive() }
                    guard let message = try await task.receive(where: bounds.accepts) else {
                        throw bounds.messageTooLarge
                    }
                    return message
                }
            }
        } catch let failure as TaskFailure {
            throw await self.problem(failure, key)
        }
        switch message {
        case nil: return .noContent
        case .string(let text)?:
            return .json(Received { ($0.type, $0.text, $0.sizeBytes) = ("text", text, text.utf8.count) })
        case .data(let bytes)?: return .json(Received(bytes))
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
        var received = Received(chunk.bytes)
        received.isAtEnd = chunk.isAtEnd
        return .json(received)
    }

    // MARK: Ping

    func ping(_ call: ControlCall) async throws -> Response {
        let live = try await self.liveConnection(call)
        guard case .webSocket(let task) = try self.endpoint(of: live) else {
            throw ControlProblem(409, "not-a-websocket", "This operation is for WebSockets only.")
        }
        guard !live.report.isSuspended else {
            throw ControlProblem(409, "suspended", "The connection is suspended and sends no Ping; resume it first.")
        }
        call.runningOperation?.accept()
        do {
            let pong: Void? = try await Waiting.withTimeout(.seconds(10)) { try await task.sendPing() }
            guard pong != nil else {
                throw ControlProblem(504, "timed-out", "No Pong arrived within 10 s.").retryable()
            }
        } catch let failure as TaskFailure {
            throw await self.problem(failure, live.report.key)
        }
        var result = PingAnswer()
        if case .live(let after) = await self.gateway.find(live.report.key), let last = after.report.roundTrips?.last {
            result.rttMs = Double(last.wholeMicroseconds) / 1000
        }
        return .json(result)
    }

    // MARK: Half-close and TLS

    /// A stream that is not part of a tunnel.
    private func unrelayedStream(_ call: ControlCall) async throws -> (StreamTask, ConnectionReport) {
        let live = try await self.liveConnection(call)
        guard case .stream(let task) = try self.endpoint(of: live) else {
            throw ControlProblem(409, "not-a-stream", "This operation is for streams only.")
        }
        guard !live.report.isRelayed else {
            throw ControlProblem(
                409, "relayed", "The connection belongs to a tunnel, which closes its directions itself.")
        }
        return (task, live.report)
    }

    func closeRead(_ call: ControlCall) async throws -> Response {
        let (task, report) = try await self.unrelayedStream(call)
        guard !report.isInputClosed else { throw ControlProblem(TaskFailure.directionClosed) }
        task.closeRead()
        return try await self.connectionResponse(report.key)
    }

    func closeWrite(_ call: ControlCall) async throws -> Response {
        let (task, report) = try await self.unrelayedStream(call)
        guard !report.isOutputClosed else { throw ControlProblem(TaskFailure.directionClosed) }
        task.closeWrite()
        return try await self.connectionResponse(report.key)
    }

    func startSecureConnection(_ call: ControlCall) async throws -> Response {
        let (task, report) = try await self.unrelayedStream(call)
        let request = try await call.decode(TLSRequest.self)
        guard report.record?.read({ $0.tls }) == nil else {
            throw ControlProblem(409, "state-conflict", "The connection already uses TLS.")
        }
        let context = try TLSRequestParser(request: request, speaksWebSocket: false, pointer: "").context()
        var settings = SecureSettings(context: context, serverName: request.serverName ?? Self.host(of: report.url))
        settings.timeout = OpenRequestParser.duration(request.timeoutMs) ?? .seconds(10)
        call.runningOperation?.accept()
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
        try await self.run(call) { endpoint in
            switch endpoint {
            case .stream(let task): if task.record.state != .suspended { task.suspendOnLoop() }
            case .webSocket(let task): task.suspendOnLoop()
            }
        }
    }

    func resume(_ call: ControlCall) async throws -> Response {
        try await self.run(call) { endpoint in
            switch endpoint {
            case .stream(let task): task.resumeOnLoop()
            case .webSocket(let task): task.resumeOnLoop()
            }
        }
    }

    /// Runs `body` on the loop of an open connection.
    private func run(_ call: ControlCall, _ body: @escaping @Sendable (RelayEndpoint) -> Void) async throws
        -> Response
    {
        let live = try await self.liveConnection(call)
        let endpoint = try self.endpoint(of: live)
        guard live.report.stage != .opening else {
            throw ControlProblem(409, "still-opening", "The connection is still being opened; try again soon.")
                .retryable(after: 1)
        }
        await endpoint.onLoop(body)
        return try await self.connectionResponse(live.report.key)
    }
}

extension Received {
    fileprivate init(_ bytes: [UInt8]) {
        self.init {
            $0.type = "data"
            $0.data = Base64.encoded(bytes)
            $0.sizeBytes = bytes.count
        }
    }
}
