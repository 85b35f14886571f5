import GatewayConfiguration
import GatewayCore
import HTTPSemantics
import HTTPTypes
import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1
import SessionTasks
import StreamTransport
import Synchronization

/// Handles every request: finds its operation, authorizes the caller, and turns errors into problem documents.
struct ControlResponder {
    let table: OperationTable
    let access: CurrentAccess
    /// Keys of the server API; without any, its paths do not exist.
    let apiKeys: @Sendable () -> [RoomAPIKey]
    let audit: AuditLog
    let metrics: RequestMetrics
    let limiter: RequestLimiter
    let clock: @Sendable () -> MonotonicInstant
    let longRunning: LongRunningRequests
    let logger: Logger
    let idempotency = Idempotency()
    private let refusedReads = RefusedReads()
    private let dateField = DateField()

    /// Handles `request` and writes the response.
    /// - Throws: an error of the connection, which is then closed.
    func handle(_ request: Request, _ writer: consuming ResponseWriter, on channel: any Channel) async throws {
        var response = await self.respond(to: request, on: channel)
        response.headers[.date] = self.dateField.text
        do {
            try await writer.write(response: response.head, body: response.body)
        } catch is HTTPParserError {
            // The server would answer a parser error with a second response.
            throw ChannelError.inputClosed
        }
    }

    func respond(to request: Request, on channel: any Channel) async -> Response {
        // Checks for descriptor exhaustion, whatever caused it, so that the reserve is released before the runtime needs it.
        DescriptorReserve.process.isAvailable()
        let whole = await self.response(to: request, channel)
        let response = request.method == .head ? whole.withoutBody : whole
        // The decoder stops parsing after a request with an upgrade offer, accepted or not.
        let isLast = request.offersUpgrade && response.status != .switchingProtocols
        return isLast ? response.closing : response
    }

    private func response(to request: Request, _ channel: any Channel) async -> Response {
        do {
            return try await self.answer(request, channel)
        } catch let problem as ControlProblem {
            return problem.closesConnection ? problem.response.closing : problem.response
        } catch is CancellationError {
            return ControlProblem(503, "cancelled", "The request was cancelled.").retryable().response
        } catch {
            self.logger.error("an operation failed", metadata: ["error": "\(error)"])
            return ControlProblem.internalError.response
        }
    }

    private func answer(_ request: Request, _ channel: any Channel) async throws -> Response {
        let target = request.head.path ?? "/"
        let mark = target.firstIndex(of: "?") ?? target.endIndex
        let path = target[..<mark]
        let isHidden = path.hasPrefix(ServerAPIResource.prefix) && self.apiKeys().isEmpty
        switch isHidden ? .notFound : self.table.find(request.method, path) {
        case .notFound:
            try self.access.current.authorizer.checkSource(of: request)
            throw ControlProblem(
                404, "unknown-path", "There is no resource at this path; /openapi.json lists all paths.")
        case .methodNotAllowed(let methods):
            try self.access.current.authorizer.checkSource(of: request)
            throw ControlProblem(
                405, "method-not-allowed", "This resource allows \(methods.joined(separator: ", "))."
            ).with { $0.allowedMethods = methods }
        case .found(let operation, let parameters):
            let query = mark == target.endIndex ? nil : String(target[target.index(after: mark)...])
            var caller = Caller.anonymous
            do {
                try self.admit(request, to: operation, as: &caller)
                // Probes are exempt from the limits.
                let isLimited = operation.scope != .none
                if isLimited {
                    let slot = ConnectionPeer.current?.slot
                    guard slot?.isForProbes != true else { throw Self.tooManyConnections }
                    try self.limiter.acquire(for: caller.name, now: self.clock())
                    slot?.requestStarted()
                }
                defer { if isLimited { self.limiter.release() } }
                return try await self.run(
                    operation, request, channel, parameters: parameters, query: query, caller: caller)
            } catch let problem as ControlProblem
                where !problem.isAudited && (operation.isWrite || self.refusedReads.isLogged(problem, at: self.clock()))
            {
                self.audit.record(operation, request, by: caller, status: problem.status, code: problem.code)
                throw problem
            }
        }
    }

    private static let tooManyConnections = ControlProblem(
        503, "too-many-connections", "The limit of concurrent connections is reached; try again soon."
    ).retryable(after: 1).closing

    /// - Parameter caller: set before the scope is checked, so that the audit log names a caller that is refused.
    private func admit(
        _ request: Request, to operation: Operation, as caller: inout Caller
    ) throws(ControlProblem) {
        let authorizer = self.access.current.authorizer
        try authorizer.checkSource(of: request)
        if operation.scope == .apiKey {
            caller = try APIKeyAuthenticator(keys: self.apiKeys()).authenticate(request.headers)
            return
        }
        caller = try authorizer.authenticate(request, for: operation)
        try authorizer.authorize(caller, for: operation)
    }

    /// - Parameter node: the node that forwards the request; such a request has no channel.
    func run(
        _ operation: Operation, _ request: Request, _ channel: (any Channel)?, parameters: [String: String],
        query: String?, caller: Caller, forwardedBy node: String? = nil
    ) async throws -> Response {
        let query = try Query(query)
        if let unknown = query.pairs.first(where: { operation.document.parameters[$0.name] == nil }) {
            throw ControlProblem(
                400, "unknown-parameter",
                "The parameter \(unknown.name.prefix(64)) is unknown here\(Self.knownParameters(operation))."
            )
            .at(parameter: String(unknown.name.prefix(64)))
        }
        // Refuses a body by its announced length, even for an operation that reads none.
        if let length = request.headers[.contentLength].flatMap({ Int($0) }), length > operation.bodyLimit {
            throw ControlProblem.bodyTooLarge(operation.bodyLimit)
        }
        if request.headers[.expect] != nil {
            channel?.triggerUserOutboundEvent(RequestHeadHandler.BodyWanted(), promise: nil)
        }
        return try await self.run(
            ControlCall(
                request: request, channel: channel, operation: operation, parameters: parameters, query: query,
                caller: caller, forwardedBy: node))
    }

    private static func knownParameters(_ operation: Operation) -> String {
        let known = operation.document.parameters.keys.sorted()
        return known.isEmpty ? "" : "; known are \(known.joined(separator: ", "))"
    }

    private func run(_ call: ControlCall) async throws -> Response {
        do {
            let response = try await self.idempotency.once(call) { try await self.perform($0) }
            self.metrics.recordResponse(call.operation.name, status: response.status.code)
            return response
        } catch {
            self.metrics.recordResponse(call.operation.name, status: (error as? ControlProblem)?.status ?? 500)
            throw error
        }
    }

    private func perform(_ call: ControlCall) async throws -> Response {
        guard call.operation.isWrite, !call.operation.isTraffic else { return try await call.operation.handler(call) }
        return try await self.longRunning.run(call) { try await self.performAudited($0) }
    }

    private func performAudited(_ call: ControlCall) async throws -> Response {
        do {
            let response = try await call.operation.handler(call)
            self.record(call, status: response.status.code, code: nil)
            return response
        } catch var problem as ControlProblem {
            self.record(call, status: problem.status, code: problem.code)
            problem.isAudited = true
            throw problem
        } catch is CancellationError {
            // The client has disconnected.
            self.record(call, status: 499, code: "client-gone")
            throw CancellationError()
        } catch {
            self.record(call, status: 500, code: "internal-error")
            throw error
        }
    }

    private func record(_ call: ControlCall, status: Int, code: String?) {
        self.audit.record(call.operation, call.request, by: call.caller, status: status, code: code)
    }
}

extension Request {
    /// Whether the client offers a protocol upgrade (RFC 9110 §7.8), as many do for HTTP/2.
    fileprivate var offersUpgrade: Bool {
        self.method == .connect
            || self.headers[.upgrade] != nil
                && self.headers.elements(.connection).contains("upgrade")
    }
}

extension Response {
    /// The response to HEAD: the same head without a body (RFC 9110 §9.3.2).
    fileprivate var withoutBody: Response {
        var headers = self.headers
        if let length = self.body.contentLength { headers[.contentLength] = "\(length)" }
        return Response(status: self.status, headers: headers, body: ResponseBody())
    }

    /// The same response, after which `RequestHeadHandler` closes the connection: for a request whose body is not read to
    /// its end, or that cannot be followed by another.
    fileprivate var closing: Response {
        var headers = self.headers
        guard headers[.connection] != "close" else { return self }
        headers[.connection] = "close"
        if headers[.contentLength] == nil, let length = self.body.contentLength {
            headers[.contentLength] = "\(length)"
        }
        return Response(status: self.status, headers: headers, body: self.body)
    }

    static func json(_ bytes: [UInt8], status: HTTPResponse.Status = .ok, headers: HTTPFields = [:]) -> Response {
        .json(ByteBuffer(bytes: bytes), status: status, headers: headers)
    }

    static func json(_ body: ByteBuffer, status: HTTPResponse.Status = .ok, headers: HTTPFields = [:]) -> Response {
        var headers = headers
        headers[.contentType] = "application/json"
        headers[.cacheControl] = "no-store"
        // Terminals and line-based tools expect a final line feed.
        var body = body
        body.writeInteger(UInt8(ascii: "\n"))
        return Response(status: status, headers: headers, body: ResponseBody(byteBuffer: body))
    }

    static func json(
        _ model: some Encodable, status: HTTPResponse.Status = .ok, headers: HTTPFields = [:]
    ) -> Response {
        .json(JSONBody.encode(model), status: status, headers: headers)
    }

    static var noContent: Response { Response(status: .noContent) }
}

extension HTTPTypes.HTTPField.Name {
    // All of these are valid tokens, so the alternatives are never used.
    /// RFC 8288.
    static let link = Self("Link") ?? .location
    static let lastEventID = Self("Last-Event-ID") ?? .accept
    static let idempotencyKey = Self("Idempotency-Key") ?? .accept
    /// RFC 7240.
    static let prefer = Self("Prefer") ?? .accept
    static let apiKey = Self("X-API-Key") ?? .accept
    /// W3C Fetch Metadata §2.4.
    static let secFetchSite = Self("Sec-Fetch-Site") ?? .accept
    /// RFC 9110 §7.2. The first Host field of a request is in `authority` instead.
    static let host = Self("Host") ?? .accept
}

/// Logs every write request, successful or refused: caller, operation, peer and result.
struct AuditLog: Sendable {
    let log: TunnelLog

    /// - Parameter code: the problem's code, if there was a problem.
    func record(_ operation: Operation, _ request: Request, by caller: Caller, status: Int, code: String?) {
        self.log.audit(
            operation: operation.name,
            // Without the query, which may contain a close reason for a peer.
            path: String((request.head.path ?? "").prefix { $0 != "?" }), caller: caller.name,
            peer: ConnectionPeer.current?.description ?? "unknown", status: status, code: code)
    }
}

/// Selects the refused reads that the audit log shows: they are logged once in a while, so that a program with a wrong token
/// is noticed, and cannot fill the log.
private final class RefusedReads: Sendable {
    /// By status: web pages, which get 403, must not hide that tokens are tried.
    private let buckets = Mutex(
        [401, 403].reduce(into: [:]) { $0[$1] = TokenBucket(AcceptRate(perSecond: 1, burst: 20)) })

    func isLogged(_ problem: ControlProblem, at now: MonotonicInstant) -> Bool {
        self.buckets.withLock { $0[problem.status]?.take(at: now) ?? false }
    }
}

/// The value of `Date`, formatted once a second (RFC 9110 §6.6.1).
private final class DateField: Sendable {
    private let latest = Mutex<(date: HTTPDate, text: String)>((.earliest, ""))

    var text: String {
        let date = HTTPDate.now
        return self.latest.withLock { latest in
            if latest.date != date { latest = (date, date.formatted) }
            return latest.text
        }
    }
}

extension HTTPDate {
    static var now: HTTPDate { HTTPDate(seconds: Machine.wallClockMilliseconds() / 1000) }
}
