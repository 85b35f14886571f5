import ControlAPI
import GatewayCore
import HTTPTypes
import Hummingbird
import HummingbirdCore
import NIOCore
import SessionTasks
import WebSocketProtocol

/// `/v1/connections`: every stream and WebSocket task, accepted or opened.
struct ConnectionsResource: Sendable {
    let context: ControlContext
    let snapshots = ListSnapshots()
    /// Connections that somebody is attached to.
    let attached = AttachedConnections()

    var gateway: Gateway { self.context.gateway }

    var operations: [Operation] {
        let listing = ConnectionFilter.parameters.union(["sort", "fields", "limit", "cursor"])
        let one = "/v1/connections/{id}"
        return [
            Operation("listConnections", .get, "/v1/connections", .read, parameters: listing) {
                try await self.list($0)
            },
            Operation("openConnection", .post, "/v1/connections", .operate, isSlow: true) { try await self.open($0) },
            Operation("getConnection", .get, one, .read, parameters: ["fields"]) { try await self.get($0) },
            Operation("changeConnection", .patch, one, .operate) { try await self.change($0) },
            Operation("closeConnection", .delete, one, .operate, parameters: ["code", "reason", "abort"]) {
                try await self.close($0)
            },
            Operation("send", .post, one + ":send", .operate, bodyLimit: Self.sendLimit) { try await self.send($0) },
            Operation(
                "receive", .post, one + ":receive", .operate, parameters: ["minimumBytes", "maximumBytes", "timeoutMs"]
            ) {
                try await self.receive($0)
            },
            Operation("ping", .post, one + ":ping", .operate, isSlow: true) { try await self.ping($0) },
            Operation("closeRead", .post, one + ":closeRead", .operate) { try await self.closeRead($0) },
            Operation("closeWrite", .post, one + ":closeWrite", .operate) { try await self.closeWrite($0) },
            Operation("startSecureConnection", .post, one + ":startSecureConnection", .operate, isSlow: true) {
                try await self.startSecureConnection($0)
            },
            Operation("attach", .get, one + "/stream", .operate) { try await self.attach($0) },
            Operation(
                "tap", .get, one + "/tap", .operate,
                parameters: StreamBounds.parameters.union(["sample", "maxBytes"])
            ) {
                try await self.tap($0)
            },
            Operation(
                "closeConnections", .post, "/v1/connections:close", .operate, parameters: BulkSelection.parameters
            ) {
                try await self.closeConnections($0)
            },
            Operation("suspend", .post, one + ":suspend", .operate) { try await self.suspend($0) },
            Operation("resume", .post, one + ":resume", .operate) { try await self.resume($0) },
        ]
    }

    // MARK: Finding one

    func key(_ call: ControlCall) throws(ControlProblem) -> ConnectionKey {
        let name = call.parameters["id"] ?? ""
        guard let key = ConnectionKey(name) else { throw .unknownConnection(name) }
        return key
    }

    /// A connection that is not over.
    /// - Throws: `ControlProblem` 404, or 410 with the closing record.
    func liveConnection(_ call: ControlCall) async throws(ControlProblem) -> Gateway.Live {
        let key = try self.key(call)
        switch await self.gateway.find(key) {
        case .live(let live): return live
        case .closed(let report): throw self.closedProblem(report)
        case .unknown: throw .unknownConnection(key.description)
        }
    }

    func closedProblem(_ report: ConnectionReport) -> ControlProblem {
        let reason = report.closing?.reason.description ?? "unknown"
        var problem = ControlProblem(410, "closed", "The connection \(report.key) is over: \(reason).")
        problem.connection = ConnectionWriter(anchor: self.context.anchor).json(report)
        return problem
    }

    /// The task, for a verb that needs one.
    /// - Throws: `ControlProblem` 409 while there is none.
    func endpoint(of live: Gateway.Live) throws(ControlProblem) -> RelayEndpoint {
        guard let link = live.link else {
            throw ControlProblem(409, "still-opening", "The connection is still in its handshake; try again soon.")
                .retryable(after: 1)
        }
        return link
    }

    /// For the end of a connection whose closing handshake is through: its peer has yet to end the transport.
    private static let patienceWithEnds = Duration.seconds(2)

    /// What a verb that failed means: a connection that is over meanwhile shows how it ended.
    func problem(_ failure: TaskFailure, _ key: ConnectionKey) async -> ControlProblem {
        switch failure {
        case .closed, .ended, .connectionLost, .peerUnresponsive, .cancelled, .protocolViolation, .messageTooLong:
            if case .closed(let report) = await self.waitForEnd(of: key, within: Self.patienceWithEnds) {
                return self.closedProblem(report)
            }
        case .timedOut, .directionClosed, .usageError, .cannotConnect, .secureConnectionFailed, .handshakeRefused: break
        }
        return ControlProblem(failure)
    }

    // MARK: Showing

    func list(_ call: ControlCall) async throws -> Response {
        let limit = try call.query.integer("limit", in: 1...ConnectionList.maximumLimit)
        let list = ConnectionList(
            gateway: self.gateway, filter: try ConnectionFilter(call.query), sort: try ConnectionSort(call.query),
            limit: limit ?? ConnectionList.defaultLimit, snapshots: self.snapshots)
        let cursor = try call.query.value("cursor").map { (text) throws(ControlProblem) in try PageCursor(text) }
        let writer = ConnectionWriter(anchor: self.context.anchor, fields: try ConnectionField.set(call.query))
        let page = try await list.page(cursor)
        let next = page.next.map { Self.path(call.query, cursor: $0) }
        // RFC 8288 §3.
        return .json(
            Self.body(of: page.reports, writer, next: next),
            headers: next.map { [.link: "<\($0)>; rel=\"next\""] } ?? [:])
    }

    /// Bytes that are written before they are moved to the answer, while the processor has them at hand.
    private static let portion = 32 << 10

    private static func body(of reports: ReportSelection, _ writer: ConnectionWriter, next: String?) -> ByteBuffer {
        var body = ByteBuffer()
        body.reserveCapacity(512 + reports.count * 1024)
        var text = JSONText(capacity: Self.portion + 8192)
        text.beginObject()
        text.key("items")
        text.beginArray()
        reports.withEach { report in
            writer.write(report, to: &text)
            if text.bytes.count >= Self.portion { text.flush(to: &body) }
        }
        text.endArray()
        text.member("next", next)
        text.endObject()
        text.flush(to: &body)
        return body
    }

    private static func path(_ query: Query, cursor: PageCursor) -> String {
        let kept = query.pairs.filter { $0.name != "cursor" }.map { pair in
            "\(PercentText.encoded(pair.name))=\(PercentText.encoded(pair.value))&"
        }
        return "/v1/connections?\(kept.joined())cursor=\(cursor.text)"
    }

    func get(_ call: ControlCall) async throws -> Response {
        let live = try await self.liveConnection(call)
        let writer = ConnectionWriter(anchor: self.context.anchor, fields: try ConnectionField.set(call.query))
        return .json(writer.json(live.report))
    }

    /// What a verb answers that has nothing else to say.
    func connectionResponse(_ key: ConnectionKey, status: HTTPResponse.Status = .ok, headers: HTTPFields = [:])
        async throws
        -> Response
    {
        let writer = ConnectionWriter(anchor: self.context.anchor)
        switch await self.gateway.find(key) {
        case .live(let live): return .json(writer.json(live.report), status: status, headers: headers)
        case .closed(let report): return .json(writer.json(report), status: status, headers: headers)
        case .unknown: throw ControlProblem.unknownConnection(key.description)
        }
    }
}

extension ConnectionsResource {
    /// Opens a connection, or a tunnel between two.
    func open(_ call: ControlCall) async throws -> Response {
        guard self.context.phase != .draining else { throw ControlProblem.draining }
        let body = try await call.jsonBytes()
        guard JSONBody.hasMember(of: Set(TunnelSide.allCases.map(\.rawValue)), in: body) else {
            return try await self.openOne(try JSONBody.decode(OpenRequest.self, from: body), call)
        }
        return try await self.openTunnel(try JSONBody.decode(TunnelRequest.self, from: body), call)
    }

    private func openOne(_ request: OpenRequest, _ call: ControlCall) async throws -> Response {
        var order = try OpenRequestParser(request).parse()
        let guarded = TargetGuard(self.context.targets, url: order.url)
        guarded.install(on: &order)
        switch await self.gateway.open(order, named: { call.runningOperation?.connectionCreated($0) }) {
        case .success(let key): return try await self.opened(key)
        case .failure where guarded.hasRefused: throw guarded.problem
        case .failure(let failure): throw await self.problem(failure)
        }
    }

    private func openTunnel(_ request: TunnelRequest, _ call: ControlCall) async throws -> Response {
        var guards: [TunnelSide: TargetGuard] = [:]
        let targets = self.context.targets
        let order = try TunnelRequestParser(request).parse { side, order in
            let guarded = TargetGuard(targets, url: order.url)
            guarded.install(on: &order)
            guards[side] = guarded
        }
        switch await self.gateway.open(order, named: { call.runningOperation?.connectionCreated($0) }) {
        case .success(let key): return try await self.opened(key)
        case .failure(let failure):
            let side = failure.key?.side ?? .downstream
            if let guarded = guards[side], guarded.hasRefused {
                throw guarded.problem.nested(under: "/\(side.rawValue)")
            }
            var problem = await self.problem(failure)
            problem.detail = "\(side.rawValue): \(problem.detail)"
            throw problem.at(pointer: "/\(side.rawValue)/url")
        }
    }

    private func opened(_ key: ConnectionKey) async throws -> Response {
        try await self.connectionResponse(key, status: .created, headers: [.location: "/v1/connections/\(key)"])
    }

    private func problem(_ failure: ClientFailure) async -> ControlProblem {
        var problem = ControlProblem(failure.failure)
        // Nothing was created: what a live connection's end would mean is meant of the attempt here.
        if [409, 410].contains(problem.status) { problem.status = 502 }
        if let key = failure.key, case .closed(let report) = await self.gateway.find(key) {
            problem.connection = ConnectionWriter(anchor: self.context.anchor).json(report)
        }
        return problem
    }
}

extension ConnectionsResource {
    /// Description, priority and labels; what is missing stays.
    func change(_ call: ControlCall) async throws -> Response {
        let live = try await self.liveConnection(call)
        let patch = try await call.decode(ConnectionPatch.self)
        let description = try OpenRequestParser.description(patch.description)
        let priority = try OpenRequestParser.priority(patch.priority)
        let labels = try patch.labels.map { (labels) throws(ControlProblem) in try OpenRequestParser.labels(labels) }
        if description != nil || priority != nil {
            let record = try self.endpoint(of: live).record
            if let description { record.update { $0.label = description.isEmpty ? nil : description } }
            if let priority { record.priority = priority }
        }
        if let labels { _ = await self.gateway.setLabels(labels, of: live.report.key) }
        return try await self.connectionResponse(live.report.key)
    }

    /// Ends a connection: with a closing handshake, in order, or at once with `abort=true`. Answers when it is over, or
    /// with 202 where that takes longer than the client waits.
    func close(_ call: ControlCall) async throws -> Response {
        let live = try await self.liveConnection(call)
        let key = live.report.key
        if try call.query.boolean("abort") == true {
            guard try call.query.value("code") == nil, try call.query.value("reason") == nil else {
                throw ControlProblem(
                    400, "invalid-parameter", "An abort says nothing to the peer: leave out code and reason."
                )
                .at(parameter: "abort")
            }
            _ = await self.gateway.abort(key)
        } else {
            _ = await self.gateway.stop(key, try Self.closeSignal(call.query))
        }
        return try await self.ended(key, within: .seconds(call.waitPreference() ?? 5))
    }

    static func closeSignal(_ query: Query) throws(ControlProblem) -> CloseSignal {
        let reason = Array((try query.value("reason") ?? "").utf8)
        guard reason.count <= 123 else {
            throw ControlProblem(
                400, "invalid-parameter", "reason must have at most 123 bytes of UTF-8 (RFC 6455 §5.5)."
            )
            .at(parameter: "reason")
        }
        guard let text = try query.value("code") else { return CloseSignal(code: 1000, reason: reason) }
        guard let code = UInt16(text), CloseCode(rawValue: code).isAllowedOnWire else {
            throw ControlProblem(
                400, "invalid-parameter",
                "code must be one that may be sent: 1000 to 1003, 1007 to 1014, 3000 to 4999 (RFC 6455 §7.4)."
            )
            .at(parameter: "code")
        }
        return CloseSignal(code: code, reason: reason)
    }

    private func ended(_ key: ConnectionKey, within limit: Duration) async throws -> Response {
        let isLive = if case .live = await self.waitForEnd(of: key, within: limit) { true } else { false }
        return try await self.connectionResponse(key, status: isLive ? .accepted : .ok)
    }

    /// What is known of a connection once it is over, or the time is.
    func waitForEnd(of key: ConnectionKey, within limit: Duration) async -> Gateway.Lookup {
        let deadline = ContinuousClock.now.advanced(by: limit)
        var pause = Duration.milliseconds(1)
        while true {
            let found = await self.gateway.find(key)
            guard case .live = found, ContinuousClock.now < deadline, !Task.isCancelled else { return found }
            try? await Task.sleep(for: pause)
            pause = min(pause * 2, .milliseconds(50))
        }
    }
}

extension ConnectionsResource {
    /// Ends every connection that is meant, at once.
    func closeConnections(_ call: ControlCall) async throws -> Response {
        let request = try await call.bulkRequest()
        guard request.ratePerSecond == nil, request.jitterMs == nil, request.deadlineMs == nil else {
            throw ControlProblem.invalid(
                "/ratePerSecond", "A rate, a jitter and a deadline are a drain's: POST /v1/drains.")
        }
        let order = try BulkSelection(request, defaultCode: 1000)
        let keys = await self.keys(matching: order.filter)
        var answer = BulkAnswer(matched: keys.count, told: 0)
        if order.isPreview { return .json(answer) }
        for key in keys where await order.close(key, in: self.gateway) { answer.told += 1 }
        return .json(answer)
    }

    /// What is meant; of a tunnel, its client's side stands for both.
    func keys(matching filter: ConnectionFilter) async -> [ConnectionKey] {
        let list = ConnectionList(
            gateway: self.gateway, filter: filter, sort: ConnectionSort(), limit: 1, snapshots: self.snapshots)
        let numbers = Set(await list.all().map(\.key.number))
        return numbers.sorted().map { ConnectionKey($0) }
    }
}

extension ControlCall {
    /// The body, with what the query says in its place.
    func bulkRequest() async throws -> BulkRequest {
        var request = try await self.decode(BulkRequest.self)
        if let all = try self.query.boolean("all") { request.all = all }
        if let preview = try self.query.boolean("preview") { request.preview = preview }
        return request
    }
}
