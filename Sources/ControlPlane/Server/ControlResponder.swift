import GatewayCore
import HTTPTypes
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import SessionTasks
import StreamTransport

/// Takes every request: finds its operation, asks the gatekeeper, and turns what goes wrong into a problem.
struct ControlResponder: HTTPResponder {
    typealias Context = ControlRequestContext

    let table: OperationTable
    let authorizer: any RequestAuthorizer
    let audit: any AuditTrail
    let metrics: RequestMetrics
    let limiter: RequestLimiter
    let clock: @Sendable () -> MonotonicInstant
    let longRunning: LongRunningRequests
    let idempotency = Idempotency()

    func respond(to request: Request, context: ControlRequestContext) async throws -> Response {
        // Whoever used up the descriptors, what the reserve holds must be given back before the runtime lacks it.
        DescriptorReserve.process.isAvailable()
        let response = await self.response(to: request, context)
        // Behind a request that offers another protocol nothing more is parsed, be the offer taken or not.
        let isLast = request.offersUpgrade && response.status != .switchingProtocols
        return isLast ? response.closing(context.channel) : response
    }

    private func response(to request: Request, _ context: ControlRequestContext) async -> Response {
        do {
            let response = try await self.answer(request, context)
            return request.method == .head ? response.withoutBody : response
        } catch let problem as ControlProblem {
            return problem.closesConnection ? problem.response.closing(context.channel) : problem.response
        } catch is CancellationError {
            return ControlProblem(503, "cancelled", "The request was given up.").retryable().response
        } catch {
            context.logger.error("an operation failed", metadata: ["error": "\(error)"])
            return ControlProblem(500, "internal-fault", "A fault of the gateway itself; its log says more.").response
        }
    }

    private func answer(_ request: Request, _ context: ControlRequestContext) async throws -> Response {
        let target = request.head.path ?? "/"
        let mark = target.firstIndex(of: "?") ?? target.endIndex
        switch self.table.find(request.method, target[..<mark]) {
        case .notFound:
            try self.authorizer.checkSource(of: request)
            throw ControlProblem(
                404, "unknown-path", "There is nothing at this path; /openapi.json lists what there is.")
        case .methodNotAllowed(let methods):
            try self.authorizer.checkSource(of: request)
            var problem = ControlProblem(
                405, "method-not-allowed", "This resource has \(methods.joined(separator: ", ")).")
            problem.allowedMethods = methods
            throw problem
        case .found(let operation, let parameters):
            let query = mark == target.endIndex ? nil : String(target[target.index(after: mark)...])
            var caller = Caller.anonymous
            do {
                try self.admit(request, to: operation, as: &caller)
                // Probes must be answered whatever else goes on.
                let counts = operation.scope != .none
                if counts {
                    let place = ConnectionPeer.current?.slot
                    guard place?.isForProbes != true else { throw Self.crowded }
                    try self.limiter.acquire(for: caller.name, now: self.clock())
                    place?.requestStarted()
                }
                defer { if counts { self.limiter.release() } }
                return try await self.carryOut(
                    operation, request, context, parameters: parameters, query: query, caller: caller)
            } catch let problem as ControlProblem where operation.isWrite && !problem.isAudited {
                self.audit.record(
                    AuditEntry(operation, request, by: caller, status: problem.status, code: problem.code))
                throw problem
            }
        }
    }

    private static let crowded = {
        var problem = ControlProblem(
            503, "too-many-connections",
            "The control plane carries out requests on as many connections as it may; try again soon."
        )
        .retryable(after: 1)
        problem.closesConnection = true
        return problem
    }()

    /// - Parameter caller: set as soon as it is known, so that the audit log names whoever is refused.
    private func admit(
        _ request: Request, to operation: Operation, as caller: inout Caller
    ) throws(ControlProblem) {
        try self.authorizer.checkSource(of: request)
        caller = try self.authorizer.authenticate(request, for: operation)
        try self.authorizer.authorize(caller, for: operation)
    }

    private func carryOut(
        _ operation: Operation, _ request: Request, _ context: ControlRequestContext, parameters: [String: String],
        query: String?, caller: Caller
    ) async throws -> Response {
        let query = try Query(query)
        if let unknown = query.pairs.first(where: { !operation.parameters.contains($0.name) }) {
            throw ControlProblem(
                400, "unknown-parameter",
                "The parameter \(unknown.name.prefix(64)) means nothing here\(Self.known(operation))."
            )
            .at(parameter: String(unknown.name.prefix(64)))
        }
        // What is announced to be too long is refused before anything is done, even where nobody would read it.
        if let length = request.headers[.contentLength].flatMap({ Int($0) }), length > operation.bodyLimit {
            throw ControlProblem.bodyTooLarge(operation.bodyLimit)
        }
        return try await self.carryOut(
            ControlCall(
                request: request, context: context, operation: operation, parameters: parameters, query: query,
                caller: caller))
    }

    private static func known(_ operation: Operation) -> String {
        operation.parameters.isEmpty ? "" : "; known are \(operation.parameters.sorted().joined(separator: ", "))"
    }

    private func carryOut(_ call: ControlCall) async throws -> Response {
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
        guard call.operation.isWrite else { return try await call.operation.handler(call) }
        return try await self.longRunning.run(call) { try await self.audited($0) }
    }

    private func audited(_ call: ControlCall) async throws -> Response {
        do {
            let response = try await call.operation.handler(call)
            self.record(call, status: response.status.code, code: nil)
            return response
        } catch var problem as ControlProblem {
            self.record(call, status: problem.status, code: problem.code)
            problem.isAudited = true
            throw problem
        } catch is CancellationError {
            // Nobody is there any more to read an answer.
            self.record(call, status: 499, code: "client-gone")
            throw CancellationError()
        } catch {
            self.record(call, status: 500, code: "internal-fault")
            throw error
        }
    }

    private func record(_ call: ControlCall, status: Int, code: String?) {
        self.audit.record(AuditEntry(call.operation, call.request, by: call.caller, status: status, code: code))
    }
}

extension Request {
    /// Whether the client offers to go over to another protocol (RFC 9110 §7.8), as many do with HTTP/2.
    var offersUpgrade: Bool {
        self.method == .connect
            || self.headers[.upgrade] != nil
                && self.headers[values: .connection].contains { value in
                    value.split(separator: ",").contains { $0.trimmingSpaces.lowercased() == "upgrade" }
                }
    }
}

extension Response {
    /// The same head, as HEAD wants it (RFC 9110 §9.3.2).
    var withoutBody: Response {
        var headers = self.headers
        if let length = self.body.contentLength { headers[.contentLength] = "\(length)" }
        return Response(status: self.status, headers: headers, body: ResponseBody())
    }
}

extension Response {
    /// How long what is still on its way from the client is thrown away, so that it can read the answer before the
    /// connection is reset (RFC 9112 §9.6).
    private static let lingering = TimeAmount.seconds(2)

    /// The same answer, after which the connection ends: for a request whose body nobody wants to see to its end, or
    /// behind which nothing can come.
    func closing(_ channel: any Channel) -> Response {
        var headers = self.headers
        guard headers[.connection] != "close" else { return self }
        headers[.connection] = "close"
        if headers[.contentLength] == nil, let length = self.body.contentLength {
            headers[.contentLength] = "\(length)"
        }
        let body = self.body
        return Response(
            status: self.status, headers: headers,
            body: ResponseBody(contentLength: self.body.contentLength) { writer in
                try await body.write(writer)
                channel.close(mode: .output, promise: nil)
                channel.eventLoop.scheduleTask(in: Self.lingering) { channel.close(promise: nil) }
            })
    }
}

extension Response {
    static func json(_ bytes: [UInt8], status: HTTPResponse.Status = .ok, headers: HTTPFields = [:]) -> Response {
        .json(ByteBuffer(bytes: bytes), status: status, headers: headers)
    }

    static func json(_ body: ByteBuffer, status: HTTPResponse.Status = .ok, headers: HTTPFields = [:]) -> Response {
        var headers = headers
        headers[.contentType] = "application/json"
        headers[.cacheControl] = "no-store"
        // So that a terminal shows its prompt on a line of its own, and that tools that read lines see the last one.
        var body = body
        body.writeInteger(UInt8(ascii: "\n"))
        return Response(status: status, headers: headers, body: ResponseBody(byteBuffer: body))
    }

    static func json(_ model: some Encodable, status: HTTPResponse.Status = .ok) -> Response {
        .json(JSONBody.encode(model), status: status)
    }

    static var noContent: Response { Response(status: .noContent) }
}

extension HTTPTypes.HTTPField.Name {
    /// RFC 8288. The alternatives are never taken: these are tokens.
    static let link = Self("Link") ?? .location
    /// RFC 7240.
    static let lastEventID = Self("Last-Event-ID") ?? .accept
    static let idempotencyKey = Self("Idempotency-Key") ?? .accept
    static let prefer = Self("Prefer") ?? .accept
    /// W3C Fetch Metadata §2.4.
    static let secFetchSite = Self("Sec-Fetch-Site") ?? .accept
    /// RFC 9110 §7.2; the first one of a request is its authority.
    static let host = Self("Host") ?? .accept
}

/// Is told of every write, carried out or refused.
protocol AuditTrail: Sendable {
    func record(_ entry: AuditEntry)
}

/// One write: who, what, from where, and what came of it.
struct AuditEntry: Sendable {
    let operation: String
    /// Without the query, which may hold what is said to a peer.
    let path: String
    let caller: Caller
    let peer: String
    let status: Int
    /// Of the problem, if there was one.
    let code: String?

    init(_ operation: Operation, _ request: Request, by caller: Caller, status: Int, code: String?) {
        self.operation = operation.name
        self.path = String((request.head.path ?? "").prefix { $0 != "?" })
        self.caller = caller
        self.peer = ConnectionPeer.current?.description ?? "unknown"
        self.status = status
        self.code = code
    }
}

/// Writes a line of the log for every write.
struct LoggedAudit: AuditTrail {
    let log: TunnelLog

    func record(_ entry: AuditEntry) {
        self.log.audit(
            operation: entry.operation, path: entry.path, caller: entry.caller.name, peer: entry.peer,
            status: entry.status, code: entry.code)
    }
}
