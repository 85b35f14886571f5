import DequeModule
import HTTPTypes
import NIOCore
import NIOHTTP1
import NIOHTTPTypes

/// Keeps the rules of RFC 9112 about requests' heads that the decoder leaves to its user, and closes the connection
/// behind the last request.
///
/// It stands between the decoder and the server. What it refuses, it answers itself, in the order of the requests.
package final class RequestHeadHandler: ChannelDuplexHandler {
    package typealias InboundIn = HTTPServerRequestPart
    package typealias InboundOut = HTTPServerRequestPart
    package typealias OutboundIn = HTTPServerResponsePart
    package typealias OutboundOut = HTTPServerResponsePart

    /// A request without its answer.
    private enum Pending {
        case taken(RequestHeadRules.Exchange)
        case refused(ControlProblem)
    }

    /// How long what the client still sends is thrown away, so that it can read the answer before the connection is reset
    /// (RFC 9112 §9.6).
    private static let lingering = TimeAmount.seconds(2)

    private let ownAuthority: String?
    /// In the order of the requests; as many as one read of the socket holds.
    private var pending: Deque<Pending> = []
    /// Whether what comes now belongs to a request that was taken.
    private var isInRequest = false
    /// Whether no request is taken any more.
    private var hasLast = false

    /// - Parameter ownAuthority: host and port for requests of HTTP/1.0 that name none.
    package init(ownAuthority: String?) {
        self.ownAuthority = ownAuthority
    }

    // MARK: Received

    package func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch self.unwrapInboundIn(data) {
        case .head(let head):
            guard !self.hasLast else { return }
            self.received(head, context)
        case .body:
            if self.isInRequest { context.fireChannelRead(data) }
        case .end:
            guard self.isInRequest else { return }
            self.isInRequest = false
            context.fireChannelRead(data)
        }
    }

    private func received(_ head: HTTPRequestHead, _ context: ChannelHandlerContext) {
        var head = head
        do throws(ControlProblem) {
            let exchange = try RequestHeadRules.check(&head, ownAuthority: self.ownAuthority)
            self.pending.append(.taken(exchange))
            self.isInRequest = true
            self.hasLast = exchange.isLast
            context.fireChannelRead(self.wrapInboundOut(.head(head)))
        } catch {
            self.pending.append(.refused(error))
            self.hasLast = true
            if self.pending.count == 1 { self.refuse(error, context) }
        }
    }

    package func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // What follows the last request is nobody's concern, however malformed.
        if self.hasLast, !self.isInRequest, error is HTTPParserError { return }
        context.fireErrorCaught(error)
    }

    // MARK: Answers

    package func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        switch self.unwrapOutboundIn(data) {
        case .head(var head):
            self.complete(&head)
            context.write(self.wrapOutboundOut(.head(head)), promise: promise)
        case .body: context.write(data, promise: promise)
        case .end: self.writeEnd(data, promise, context)
        }
    }

    /// Says whether the connection stays, and keeps to what a client of HTTP/1.0 understands.
    private func complete(_ head: inout HTTPResponseHead) {
        guard case .taken(var exchange)? = self.pending.first, head.status.code >= 200 else { return }
        let asksForClose = head.headers[canonicalForm: "Connection"].contains { $0.lowercased() == "close" }
        let hasEnd = head.headers.contains(name: "Content-Length") || !head.status.mayHaveResponseBody
        if exchange.isHTTP10, !hasEnd {
            // Without chunks only the end of the connection is the end of the body (RFC 9112 §6.3); the encoder chunks
            // where the answer is of HTTP/1.1.
            head.version = .http1_0
            exchange.isLast = true
        }
        exchange.isLast = exchange.isLast || asksForClose
        if exchange.isLast {
            head.headers.replaceOrAdd(name: "Connection", value: "close")
            self.hasLast = true
        } else if exchange.isHTTP10 {
            head.headers.replaceOrAdd(name: "Connection", value: "keep-alive")
        }
        self.pending[0] = .taken(exchange)
    }

    private func writeEnd(_ data: NIOAny, _ promise: EventLoopPromise<Void>?, _ context: ChannelHandlerContext) {
        guard case .taken(let exchange)? = self.pending.popFirst() else { return context.write(data, promise: promise) }
        context.writeAndFlush(data, promise: promise)
        if exchange.isLast { return self.finish(context) }
        if case .refused(let problem)? = self.pending.first { self.refuse(problem, context) }
    }

    private func refuse(_ problem: ControlProblem, _ context: ChannelHandlerContext) {
        self.pending.removeAll()
        let body = problem.body
        let head = HTTPResponseHead(
            version: .http1_1, status: HTTPResponseStatus(statusCode: problem.status),
            headers: [
                "Content-Type": "application/problem+json", "Cache-Control": "no-store",
                "Content-Length": "\(body.readableBytes)", "Connection": "close",
            ])
        context.write(self.wrapOutboundOut(.head(head)), promise: nil)
        context.write(self.wrapOutboundOut(.body(.byteBuffer(body))), promise: nil)
        context.writeAndFlush(self.wrapOutboundOut(.end(nil)), promise: nil)
        self.finish(context)
    }

    private func finish(_ context: ChannelHandlerContext) {
        context.close(mode: .output, promise: nil)
        context.eventLoop.assumeIsolated().scheduleTask(in: Self.lingering) { context.close(promise: nil) }
    }
}

/// What RFC 9112 says of a request's head: whether the connection stays behind it, how its body is framed, and whose
/// authority counts.
package enum RequestHeadRules {
    /// What the answer must heed.
    package struct Exchange: Equatable, Sendable {
        /// The client speaks HTTP/1.0: it knows no chunks.
        package let isHTTP10: Bool
        /// The connection is closed behind the answer.
        package var isLast: Bool

        package init(isHTTP10: Bool, isLast: Bool) {
            self.isHTTP10 = isHTTP10
            self.isLast = isLast
        }
    }

    /// Checks `head`, and puts it into the form that the server reads: a target in origin form, the authority that counts
    /// in `Host`, and `Connection: close` where the connection ends behind the answer.
    /// - Parameter ownAuthority: host and port for requests of HTTP/1.0 that name none (RFC 9112 §3.3).
    /// - Throws: `ControlProblem` 501 for a transfer coding other than `chunked`, or any of HTTP/1.0 (§6.1), and 421 for a
    ///   target of another scheme.
    package static func check(
        _ head: inout HTTPRequestHead, ownAuthority: String?
    ) throws(ControlProblem) -> Exchange {
        let isHTTP10 = head.version == .http1_0
        try Self.checkCodings(head.headers[canonicalForm: "Transfer-Encoding"].map { $0.lowercased() }, isHTTP10: isHTTP10)
        try Self.readTarget(&head, isHTTP10: isHTTP10)
        if isHTTP10, !head.headers.contains(name: "Host"), let ownAuthority {
            head.headers.add(name: "Host", value: ownAuthority)
        }
        // RFC 9110 §7.8: HTTP/1.0 has no such offers.
        if isHTTP10 { head.headers.remove(name: "Upgrade") }
        let options = head.headers[canonicalForm: "Connection"].map { $0.lowercased() }
        // RFC 9112 §9.3.
        let isLast = options.contains("close") || (isHTTP10 && !options.contains("keep-alive"))
        if isLast { head.headers.replaceOrAdd(name: "Connection", value: "close") }
        return Exchange(isHTTP10: isHTTP10, isLast: isLast)
    }

    private static func checkCodings(_ codings: [String], isHTTP10: Bool) throws(ControlProblem) {
        guard !codings.isEmpty else { return }
        guard !isHTTP10 else {
            throw ControlProblem(
                501, "unsupported-transfer-coding",
                "HTTP/1.0 has no Transfer-Encoding (RFC 9112 §6.1); send Content-Length, or HTTP/1.1.")
        }
        guard codings == ["chunked"] else {
            throw ControlProblem(
                501, "unsupported-transfer-coding", "The only transfer coding that is understood is chunked.")
        }
    }

    /// Of a target in absolute form, the authority counts in place of `Host` (RFC 9112 §3.2.2). How many of those there
    /// are is checked later: a request of HTTP/1.1 needs one all the same (§3.2).
    private static func readTarget(_ head: inout HTTPRequestHead, isHTTP10: Bool) throws(ControlProblem) {
        guard head.method != .CONNECT, head.uri.first != "/", let mark = head.uri.firstRange(of: "://") else { return }
        guard ["http", "https"].contains(head.uri[..<mark.lowerBound].lowercased()) else {
            throw ControlProblem(421, "unknown-scheme", "The target must be of http or https.")
        }
        let rest = head.uri[mark.upperBound...]
        let authority = rest.prefix { !"/?#".contains($0) }
        let resource = rest[authority.endIndex...].prefix { $0 != "#" }
        let hosts = head.headers["Host"].count
        if hosts == 1 || (isHTTP10 && hosts == 0) {
            head.headers.replaceOrAdd(name: "Host", value: String(authority))
        }
        head.uri = resource.first == "/" ? String(resource) : "/" + resource
    }
}

/// Ends a connection whose request does not come: the head of the first one must be there soon after the connection,
/// its TLS handshake included, and that of every other soon after its first byte.
final class RequestHeadTimeoutHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    static let limit = TimeAmount.seconds(20)

    /// Of the connection.
    let slot: ConnectionSlot?
    private var timer: Scheduled<Void>?
    /// Between a head and the end of its request.
    private var isInRequest = false

    init(_ place: ConnectionSlot?) {
        self.slot = place
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.arm(context)
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.disarm()
    }

    func channelInactive(context: ChannelHandlerContext) {
        self.disarm()
        context.fireChannelInactive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if !self.isInRequest { self.arm(context) }
        context.fireChannelRead(data)
    }

    func headReceived() {
        self.isInRequest = true
        self.disarm()
    }

    func requestReceived() {
        self.isInRequest = false
    }

    private func arm(_ context: ChannelHandlerContext) {
        guard self.timer == nil else { return }
        self.timer = context.eventLoop.assumeIsolated().scheduleTask(in: Self.limit) { context.close(promise: nil) }
    }

    private func disarm() {
        self.timer?.cancel()
        self.timer = nil
    }
}

/// Tells the connection's `RequestHeadTimeoutHandler` where requests begin and end, and its place where answers do.
final class ExchangeTrackingHandler: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPRequestPart
    typealias InboundOut = HTTPRequestPart
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = HTTPResponsePart

    private var deadline: RequestHeadTimeoutHandler?

    func handlerAdded(context: ChannelHandlerContext) {
        self.deadline = try? context.pipeline.syncOperations.handler(type: RequestHeadTimeoutHandler.self)
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.deadline = nil
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch self.unwrapInboundIn(data) {
        case .head: self.deadline?.headReceived()
        case .body: break
        case .end: self.deadline?.requestReceived()
        }
        context.fireChannelRead(data)
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        if case .end = self.unwrapOutboundIn(data) { self.deadline?.slot?.requestFinished() }
        context.write(data, promise: promise)
    }
}

/// Says why, where HTTP itself refuses a request that it cannot read, and would with a bare 400.
final class BadRequestProblemHandler: ChannelOutboundHandler, RemovableChannelHandler {
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = HTTPResponsePart

    private static let problem = ControlProblem(
        400, "malformed-request",
        "The request is no HTTP/1.1 (RFC 9112), or has a head of more than 32 KiB, or a field of more than 16 KiB."
    )

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard case .head(var head) = self.unwrapOutboundIn(data), head.status == .badRequest,
            head.headerFields[.contentLength] == "0", head.headerFields[.connection] == "close"
        else { return context.write(data, promise: promise) }
        let document = Self.problem.body
        head.headerFields[.contentLength] = "\(document.readableBytes)"
        head.headerFields[.contentType] = "application/problem+json"
        head.headerFields[.cacheControl] = "no-store"
        context.write(self.wrapOutboundOut(.head(head)), promise: nil)
        context.write(self.wrapOutboundOut(.body(document)), promise: promise)
    }
}
