import GatewayCore
import HTTPTypes
import Hummingbird
import HummingbirdCore
import NIOCore
import SessionTasks

/// `/v1/connections`: every stream and WebSocket task, accepted or opened.
struct ConnectionsResource: Sendable {
    let context: ControlContext
    let kept = KeptLists()
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
                "closeConnections", .post, "/v1/connections:close", .operate, parameters: BulkOrder.parameters
            ) {
                try await self.closeMany($0)
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
    func live(_ call: ControlCall) async throws(ControlProblem) -> Gateway.Live {
        let key = try self.key(call)
        switch await self.gateway.find(key) {
        case .live(let live): return live
        case .closed(let report): throw self.closed(report)
        case .unknown: throw .unknownConnection(key.description)
        }
    }

    func closed(_ report: ConnectionReport) -> ControlProblem {
        let reason = report.closing?.reason.description ?? "unknown"
        var problem = ControlProblem(410, "closed", "The connection \(report.key) is over: \(reason).")
        problem.connection = ConnectionWriter(anchor: self.context.anchor).json(report)
        return problem
    }

    /// The task, for a verb that needs one.
    /// - Throws: `ControlProblem` 409 while there is none.
    func link(_ live: Gateway.Live) throws(ControlProblem) -> TunnelLink {
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
            if case .closed(let report) = await self.found(key, endedWithin: Self.patienceWithEnds) {
                return self.closed(report)
            }
        case .timedOut, .directionClosed, .usage, .cannotConnect, .secureConnectionFailed, .handshakeRefused: break
        }
        return ControlProblem(failure)
    }

    // MARK: Showing

    func list(_ call: ControlCall) async throws -> Response {
        let limit = try call.query.integer("limit", in: 1...ConnectionList.largestLimit)
        let list = ConnectionList(
            gateway: self.gateway, filter: try ConnectionFilter(call.query), sort: try ConnectionSort(call.query),
            limit: limit ?? ConnectionList.standardLimit, kept: self.kept)
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
        reports.visit { report in
            writer.write(report, to: &text)
            if text.bytes.count >= Self.portion { text.move(to: &body) }
        }
        text.endArray()
        text.member("next", next)
        text.endObject()
        text.move(to: &body)
        return body
    }

    private static func path(_ query: Query, cursor: PageCursor) -> String {
        let kept = query.pairs.filter { $0.name != "cursor" }.map { pair in
            "\(PercentText.encoded(pair.name))=\(PercentText.encoded(pair.value))&"
        }
        return "/v1/connections?\(kept.joined())cursor=\(cursor.text)"
    }

    func get(_ call: ControlCall) async throws -> Response {
        let live = try await self.live(call)
        let writer = ConnectionWriter(anchor: self.context.anchor, fields: try ConnectionField.set(call.query))
        return .json(writer.json(live.report))
    }

    /// What a verb answers that has nothing else to say.
    func shown(_ key: ConnectionKey, status: HTTPResponse.Status = .ok, headers: HTTPFields = [:]) async throws
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
