import ControlAPI
import GatewayCore
import HTTPTypes
import HummingbirdCore
import NIOCore
import SessionTasks
import WebSocketProtocol

/// `/v1/connections`: every stream and WebSocket task, accepted or opened.
struct ConnectionsResource: Sendable {
    let context: ControlContext
    let attached = AttachedConnections()
    let snapshots = ListSnapshots()

    /// Time for the peer to end the transport after the closing handshake.
    private static let transportEndTimeout = Duration.seconds(2)
    /// Bytes of a list that are written before they move to the response, to stay within the processor's cache.
    private static let listChunkSize = 32 << 10

    var gateway: Gateway { self.context.gateway }

    static let one = PathTemplate(
        "/v1/connections/{id}",
        .init("The connection's id: 17, or 17u for the upstream side of its tunnel.", example: "17"))

    var operations: [Operation] { self.basics + self.taskVerbs + self.streams }

    private var basics: [Operation] {
        [
            Operation("listConnections", .get, "/v1/connections", .read, Self.listDocument) { try await self.list($0) },
            Operation("openConnection", .post, "/v1/connections", .operate, self.openDocument, isLongRunning: true) {
                try await self.open($0)
            },
            Operation(
                "getConnection", .get, Self.one, .read,
                OperationDocument(
                    "Gets a connection", parameters: ["fields": Self.fields],
                    responses: [.init(200, "The connection", .json(Connection.self))], problems: [404, 410])
            ) { try await self.get($0) },
            Operation(
                "changeConnection", .patch, Self.one, .operate,
                OperationDocument(
                    "Changes description, priority and labels; missing members stay unchanged",
                    body: [.json(ConnectionPatch.self)],
                    responses: [.init(200, "The current state", .json(Connection.self))], problems: [404, 409, 410])
            ) { try await self.change($0) },
            Operation("closeConnection", .delete, Self.one, .operate, Self.closeDocument) { try await self.close($0) },
            Operation(
                "closeConnections", .post, "/v1/connections:close", .operate,
                OperationDocument(
                    "Closes all selected connections at once", parameters: BulkSelection.parameters,
                    body: [.json(BulkRequest.self)],
                    responses: [.init(200, "The number of connections", .json(BulkAnswer.self))])
            ) { try await self.closeConnections($0) },
        ]
    }

    private static let fields = JSONValue.text(
        "Names of members, separated by commas. Default: all members.", example: "id,state,ageMs")

    private static let listDocument = OperationDocument(
        "Lists connections page by page",
        parameters: ConnectionFilter.parameters.merging([
            "sort": .choice(
                ConnectionSort.Criterion.allCases.flatMap { [$0.rawValue, "-\($0.rawValue)"] },
                "Sort key; a leading - sorts in descending order. Default: id.", example: "-age"),
            "limit": .integer(1...ConnectionList.maximumLimit, "Connections per page.", example: 100),
            "fields": Self.fields, "cursor": .cursor,
        ]) { first, _ in first },
        responses: [.init(200, "A page", .json(ConnectionPage.self), headers: .nextPage)], problems: [410])

    private var openDocument: OperationDocument {
        OperationDocument(
            "Opens a connection, or a tunnel between two",
            body: [.json(OpenRequest.self, or: TunnelRequest.self)], isBodyRequired: true,
            responses: [
                .init(
                    201, "The open connection; the downstream side of a tunnel", .json(Connection.self),
                    headers: .location,
                    links: ["getConnection", "changeConnection", "closeConnection"]
                        + self.taskVerbs.map(\.name).sorted())
            ], problems: [404, 409, 410, 502, 504])
    }

    private static let closeDocument = OperationDocument(
        "Closes a connection, with a closing handshake or at once",
        parameters: [
            "code": .integer(1000...4999, "Code of the Close frame to a WebSocket. Default: 1000.", example: 4001),
            "abort": .boolean("Resets without a closing handshake. Default: false.", example: false),
            "reason": .text("Reason of the Close frame; at most 123 bytes of UTF-8.", example: "maintenance"),
        ], headers: .wait,
        responses: [.init(200, "Closed", .json(Connection.self)), .init(202, "Closing", .json(Connection.self))],
        problems: [404, 410])

    /// Operations that copy or take over the traffic.
    private var streams: [Operation] {
        [
            Operation(
                "attach", .get, Self.one + "/stream", .operate,
                OperationDocument(
                    "Upgrades to a WebSocket that carries the connection's traffic; an empty message closes a stream for writing",
                    responses: [.init(101, "A WebSocket")], problems: [404, 405, 409, 410, 426])
            ) { try await self.attach($0) },
            Operation(
                "tap", .get, Self.one + "/tap", .operate,
                OperationDocument(
                    "Copies the connection's traffic, as Server-Sent Events or over a WebSocket",
                    parameters: StreamBounds.parameters.merging([
                        "sample": .integer(
                            1...1_000_000, "Copies one message of this number; of a stream, one piece. Default: 1.",
                            example: 100),
                        "maxBytes": .integer(
                            0...65_536, "Most bytes copied of each message or piece. Default: 4096.", example: 4096),
                    ]) { first, _ in first },
                    responses: [
                        .init(101, "A WebSocket with one piece per message"),
                        .init(200, "Pieces", .events(of: TapRecord.self, example: Examples.piece)),
                    ], problems: [404, 405, 409, 410, 426, 429])
            ) { try await self.tap($0) },
        ]
    }

    // MARK: Lookup

    func key(_ call: ControlCall) throws(ControlProblem) -> ConnectionKey {
        let name = call.parameters["id"] ?? ""
        guard let key = ConnectionKey(name) else { throw .unknownConnection(name) }
        return key
    }

    /// - Throws: `ControlProblem` 404, or 410 with the closing record.
    func liveConnection(_ call: ControlCall) async throws(ControlProblem) -> Gateway.Live {
        let key = try self.key(call)
        switch await self.gateway.find(key) {
        case .live(let live): return live
        case .closed(let report): throw self.closedProblem(report)
        case .unknown: throw .unknownConnection(key.description)
        }
    }

    private func closedProblem(_ report: ConnectionReport) -> ControlProblem {
        let reason = report.closing?.reason.description ?? "unknown"
        return ControlProblem(410, "closed", "The connection \(report.key) is closed: \(reason).").with {
            $0.connection = self.context.connectionWriter().json(report)
        }
    }

    /// The task of a connection.
    /// - Throws: `ControlProblem` 409 during the connection's handshake.
    func endpoint(of live: Gateway.Live) throws(ControlProblem) -> RelayEndpoint {
        guard let endpoint = live.endpoint else {
            throw ControlProblem(409, "still-opening", "The connection is still in its handshake; try again soon.")
                .retryable(after: 1)
        }
        return endpoint
    }

    /// The problem for a failed operation; with the closing record if the connection closed meanwhile.
    func problem(_ failure: TaskFailure, _ key: ConnectionKey) async -> ControlProblem {
        switch failure {
        case .closed, .ended, .connectionLost, .peerUnresponsive, .cancelled, .protocolViolation, .messageTooLong:
            if case .closed(let report) = await self.waitForEnd(of: key, within: Self.transportEndTimeout) {
                return self.closedProblem(report)
            }
        case .timedOut, .directionClosed, .usageError, .cannotConnect, .secureConnectionFailed, .handshakeRefused: break
        }
        return ControlProblem(failure)
    }

    // MARK: Reading

    private func list(_ call: ControlCall) async throws -> Response {
        if let cluster = self.context.cluster { return try await self.list(call, on: NodeCaller(cluster: cluster)) }
        let limit = try call.query.integer("limit", in: 1...ConnectionList.maximumLimit)
        let list = ConnectionList(
            gateway: self.gateway, filter: try ConnectionFilter(call.query), sort: try ConnectionSort(call.query),
            limit: limit ?? ConnectionList.defaultLimit, snapshots: self.snapshots)
        let cursor = try call.query.value("cursor").map { (text) throws(ControlProblem) in try PageCursor(text) }
        let writer = self.context.connectionWriter(fields: try ConnectionWriter.fields(call.query))
        let page = try await list.page(cursor)
        let next = page.next.map { call.query.nextPage(of: "/v1/connections", cursor: $0.text) }
        // RFC 8288 §3.
        return .json(
            Self.body(of: page.reports, writer, next: next),
            headers: next.map { [.link: "<\($0)>; rel=\"next\""] } ?? [:])
    }

    private static func body(of reports: ReportSelection, _ writer: ConnectionWriter, next: String?) -> ByteBuffer {
        var body = ByteBuffer()
        body.reserveCapacity(512 + reports.count * 1024)
        var text = JSONText(capacity: Self.listChunkSize + 8192)
        text.beginObject()
        text.key("items")
        text.beginArray()
        reports.withEach { report in
            writer.write(report, to: &text)
            if text.bytes.count >= Self.listChunkSize { text.flush(to: &body) }
        }
        text.endArray()
        text.member("next", next)
        text.endObject()
        text.flush(to: &body)
        return body
    }

    private func get(_ call: ControlCall) async throws -> Response {
        let live = try await self.liveConnection(call)
        let writer = self.context.connectionWriter(fields: try ConnectionWriter.fields(call.query))
        return .json(writer.json(live.report))
    }

    /// A response with the current state of a connection.
    func connectionResponse(
        _ key: ConnectionKey, status: HTTPResponse.Status = .ok, headers: HTTPTypes.HTTPFields = [:]
    )
        async throws
        -> Response
    {
        let writer = self.context.connectionWriter()
        switch await self.gateway.find(key) {
        case .live(let live): return .json(writer.json(live.report), status: status, headers: headers)
        case .closed(let report): return .json(writer.json(report), status: status, headers: headers)
        case .unknown: throw ControlProblem.unknownConnection(key.description)
        }
    }

    // MARK: Opening

    /// Opens a connection, or a tunnel between two.
    private func open(_ call: ControlCall) async throws -> Response {
        try self.context.checkNotDraining()
        let body = try await call.jsonBytes()
        guard JSONBody.hasMember(of: Set(TunnelSide.allCases.map(\.rawValue)), in: body) else {
            return try await self.openOne(try JSONBody.decode(OpenRequest.self, from: body), call)
        }
        return try await self.openTunnel(try JSONBody.decode(TunnelRequest.self, from: body), call)
    }

    private func openOne(_ request: OpenRequest, _ call: ControlCall) async throws -> Response {
        var connection = try OpenRequestParser(request).parse()
        let targetGuard = TargetGuard(self.context.targets, url: connection.url)
        targetGuard.install(on: &connection)
        switch await self.gateway.open(connection, keyAssigned: { call.runningOperation?.connectionCreated($0) }) {
        case .success(let key): return try await self.opened(key)
        case .failure where targetGuard.hasRefused: throw targetGuard.problem
        case .failure(let failure): throw await self.problem(failure)
        }
    }

    private func openTunnel(_ request: TunnelRequest, _ call: ControlCall) async throws -> Response {
        var guards: [TunnelSide: TargetGuard] = [:]
        let targets = self.context.targets
        let tunnel = try TunnelRequestParser(request).parse { side, connection in
            let targetGuard = TargetGuard(targets, url: connection.url)
            targetGuard.install(on: &connection)
            guards[side] = targetGuard
        }
        switch await self.gateway.open(tunnel, keyAssigned: { call.runningOperation?.connectionCreated($0) }) {
        case .success(let key): return try await self.opened(key)
        case .failure(let failure):
            let side = failure.key?.side ?? .downstream
            if let targetGuard = guards[side], targetGuard.hasRefused {
                throw targetGuard.problem.nested(under: "/\(side.rawValue)")
            }
            var problem = await self.problem(failure)
            problem.detail = "\(side.rawValue): \(problem.detail)"
            throw problem.at(pointer: "/\(side.rawValue)/url")
        }
    }

    private func opened(_ key: ConnectionKey) async throws -> Response {
        let location = "/v1/connections/\(self.context.qualified("\(key)"))"
        return try await self.connectionResponse(key, status: .created, headers: [.location: location])
    }

    private func problem(_ failure: ClientFailure) async -> ControlProblem {
        var problem = ControlProblem(failure.failure)
        // 409 and 410 are for existing connections; here the attempt to open one failed.
        if [409, 410].contains(problem.status) { problem.status = 502 }
        if let key = failure.key, case .closed(let report) = await self.gateway.find(key) {
            problem.connection = self.context.connectionWriter().json(report)
        }
        return problem
    }

    // MARK: Changing and closing

    /// Changes description, priority and labels; members that are missing stay unchanged.
    private func change(_ call: ControlCall) async throws -> Response {
        let live = try await self.liveConnection(call)
        let patch = try await call.decode(ConnectionPatch.self)
        let labels = try patch.labels.map { (labels) throws(ControlProblem) in try OpenRequestParser.labels(labels) }
        if patch.description != nil || patch.priority != nil {
            let record = try self.endpoint(of: live).task.record
            if let description = patch.description {
                record.update { $0.label = description.isEmpty ? nil : description }
            }
            if let priority = patch.priority { record.priority = Float(priority) }
        }
        if let labels { _ = await self.gateway.setLabels(labels, of: live.report.key) }
        return try await self.connectionResponse(live.report.key)
    }

    /// Closes a connection gracefully, or at once with `abort=true`. Responds when it is closed, or with 202 if that
    /// takes longer than the client waits.
    private func close(_ call: ControlCall) async throws -> Response {
        let live = try await self.liveConnection(call)
        let key = live.report.key
        if try call.query.boolean("abort") == true {
            guard try call.query.value("code") == nil, try call.query.value("reason") == nil else {
                throw ControlProblem.invalid(
                    parameter: "abort", "abort=true sends no Close frame; leave out code and reason.")
            }
            _ = await self.gateway.abort(key)
        } else {
            _ = await self.gateway.stop(key, try Self.closeSignal(call.query))
        }
        let lookup = await self.waitForEnd(of: key, within: .seconds(call.waitPreference() ?? 5))
        let isLive = if case .live = lookup { true } else { false }
        return try await self.connectionResponse(key, status: isLive ? .accepted : .ok)
    }

    private static func closeSignal(_ query: Query) throws(ControlProblem) -> CloseSignal {
        let reason = Array((try query.value("reason") ?? "").utf8)
        guard reason.count <= 123 else {
            throw ControlProblem.invalid(
                parameter: "reason", "reason must have at most 123 bytes of UTF-8 (RFC 6455 §5.5).")
        }
        guard let text = try query.value("code") else { return CloseSignal(code: 1000, reason: reason) }
        guard let code = UInt16(text), CloseCode(rawValue: code).isAllowedOnWire else {
            throw ControlProblem.invalid(
                parameter: "code",
                "code must be allowed in a Close frame: 1000 to 1003, 1007 to 1014, 3000 to 4999 (RFC 6455 §7.4).")
        }
        return CloseSignal(code: code, reason: reason)
    }

    /// Waits until a connection is closed, or for the time limit.
    private func waitForEnd(of key: ConnectionKey, within limit: Duration) async -> Gateway.Lookup {
        var lookup = Gateway.Lookup.unknown
        await Waiting.poll(within: limit) {
            lookup = await self.gateway.find(key)
            if case .live = lookup { return false }
            return true
        }
        return lookup
    }

    /// Closes all selected connections at once.
    private func closeConnections(_ call: ControlCall) async throws -> Response {
        let request = try await call.bulkRequest()
        guard request.nodes == nil else {
            throw ControlProblem.invalid("/nodes", "Name nodes in the query parameter node.")
        }
        guard request.ratePerSecond == nil, request.jitterMs == nil, request.deadlineMs == nil else {
            throw ControlProblem.invalid(
                "/ratePerSecond", "For a rate, a jitter or a deadline, use POST /v1/drains.")
        }
        let selection = try BulkSelection(request, defaultCode: 1000)
        let keys = await self.keys(matching: selection.filter)
        var result = BulkAnswer { $0.matched = keys.count }
        if selection.isPreview { return .json(result) }
        for key in keys where await selection.close(key, in: self.gateway) { result.notified += 1 }
        return .json(result)
    }

    /// The selected connections. The downstream side of a tunnel represents both sides.
    func keys(matching filter: ConnectionFilter) async -> [ConnectionKey] {
        let list = ConnectionList(
            gateway: self.gateway, filter: filter, sort: ConnectionSort(), limit: 1, snapshots: self.snapshots)
        let numbers = Set(await list.all().map(\.key.number))
        return numbers.sorted().map { ConnectionKey($0) }
    }
}

extension ControlCall {
    /// The body, with members overridden by query parameters.
    func bulkRequest() async throws -> BulkRequest {
        var request = try await self.decode(BulkRequest.self)
        if let all = try self.query.boolean("all") { request.all = all }
        if let preview = try self.query.boolean("preview") { request.preview = preview }
        return request
    }
}
