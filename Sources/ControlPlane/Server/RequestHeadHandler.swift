import DequeModule
import HTTPSemantics
import HTTPTypes
import NIOCore
import NIOHTTP1
import NIOHTTPTypes

/// Enforces the rules of RFC 9112 for request heads that the decoder does not check, and closes the connection after
/// the last response.
///
/// It sits between the decoder and the server, and responds itself to the requests it refuses, in order.
package final class RequestHeadHandler: ChannelDuplexHandler {
    package typealias InboundIn = HTTPServerRequestPart
    package typealias InboundOut = HTTPServerRequestPart
    package typealias OutboundIn = HTTPServerResponsePart
    package typealias OutboundOut = HTTPServerResponsePart

    /// A request whose response is not complete.
    private enum Pending {
        case accepted(RequestHeadRules.Exchange)
        case refused(ControlProblem, isHead: Bool)
    }

    /// An outbound event: the server reads the body of the request that it answers next.
    package struct BodyWanted: Sendable {
        package init() {}
    }

    /// Time during which input is read and discarded after the last response: closing a socket with unread input resets
    /// the connection, and the client may lose the response (RFC 9112 §9.6).
    private static let lingering = TimeAmount.seconds(10)

    private let ownAuthority: String?
    /// Pipelined requests in order; bounded by what one read of the socket holds.
    private var pending: Deque<Pending> = []
    /// Whether body parts belong to an accepted request.
    private var isInRequest = false
    /// Whether further requests are ignored.
    private var hasLast = false
    /// Whether the last response is written.
    private var isLingering = false

    /// - Parameter ownAuthority: host and port for HTTP/1.0 requests without a Host field.
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
            self.pending.append(.accepted(exchange))
            self.isInRequest = true
            self.hasLast = exchange.isLast
            context.fireChannelRead(self.wrapInboundOut(.head(head)))
        } catch {
            let isHead = head.method == .HEAD
            self.pending.append(.refused(error, isHead: isHead))
            self.hasLast = true
            if self.pending.count == 1 { self.refuse(error, isHead: isHead, context) }
        }
    }

    package func channelReadComplete(context: ChannelHandlerContext) {
        // The server no longer asks for input.
        if self.isLingering { context.read() }
        context.fireChannelReadComplete()
    }

    package func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // Bytes after the last request are ignored, malformed or not.
        if self.isLingering || self.hasLast && !self.isInRequest && error is HTTPParserError { return }
        context.fireErrorCaught(error)
    }

    // MARK: Responses

    package func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        switch self.unwrapOutboundIn(data) {
        case .head(var head):
            self.complete(&head)
            context.write(self.wrapOutboundOut(.head(head)), promise: promise)
        case .body: context.write(data, promise: promise)
        case .end: self.writeEnd(data, promise, context)
        }
    }

    /// Sets `Connection`, and the version for a client of HTTP/1.0.
    private func complete(_ head: inout HTTPResponseHead) {
        guard case .accepted(var exchange)? = self.pending.first, head.status.code >= 200 else { return }
        let asksForClose = head.headers[canonicalForm: "Connection"].contains { $0.lowercased() == "close" }
        let hasEnd = head.headers.contains(name: "Content-Length") || !head.status.mayHaveResponseBody
        if exchange.isHTTP10, !hasEnd {
            // Without chunks, closing the connection ends the body (RFC 9112 §6.3). The encoder would use chunks for a
            // response of HTTP/1.1.
            head.version = .http1_0
            exchange.isLast = true
        }
        // A client that still waits may send its body or not: nothing can follow.
        exchange.isLast = exchange.isLast || asksForClose || exchange.awaitsContinue
        if exchange.isLast {
            head.headers.replaceOrAdd(name: "Connection", value: "close")
            self.hasLast = true
        } else if exchange.isHTTP10 {
            head.headers.replaceOrAdd(name: "Connection", value: "keep-alive")
        }
        self.pending[0] = .accepted(exchange)
    }

    private func writeEnd(_ data: NIOAny, _ promise: EventLoopPromise<Void>?, _ context: ChannelHandlerContext) {
        guard case .accepted(let exchange)? = self.pending.popFirst() else {
            return context.write(data, promise: promise)
        }
        context.writeAndFlush(data, promise: promise)
        if exchange.isLast { return self.finish(context) }
        if case .refused(let problem, let isHead)? = self.pending.first {
            self.refuse(problem, isHead: isHead, context)
        }
    }

    package func triggerUserOutboundEvent(
        context: ChannelHandlerContext, event: Any, promise: EventLoopPromise<Void>?
    ) {
        guard event is BodyWanted else { return context.triggerUserOutboundEvent(event, promise: promise) }
        if case .accepted(var exchange)? = self.pending.first, exchange.awaitsContinue {
            exchange.awaitsContinue = false
            self.pending[0] = .accepted(exchange)
            let head = HTTPResponseHead(version: .http1_1, status: .continue)
            context.writeAndFlush(self.wrapOutboundOut(.head(head)), promise: nil)
        }
        promise?.succeed()
    }

    private func refuse(_ problem: ControlProblem, isHead: Bool, _ context: ChannelHandlerContext) {
        self.pending.removeAll()
        let body = problem.body
        let head = HTTPResponseHead(
            version: .http1_1, status: HTTPResponseStatus(statusCode: problem.status),
            headers: [
                "Content-Type": "application/problem+json", "Cache-Control": "no-store",
                "Content-Length": "\(body.readableBytes)", "Connection": "close", "Date": HTTPDate.now.formatted,
            ])
        context.write(self.wrapOutboundOut(.head(head)), promise: nil)
        if !isHead { context.write(self.wrapOutboundOut(.body(.byteBuffer(body))), promise: nil) }
        context.writeAndFlush(self.wrapOutboundOut(.end(nil)), promise: nil)
        self.finish(context)
    }

    private func finish(_ context: ChannelHandlerContext) {
        self.isInRequest = false
        self.isLingering = true
        context.close(mode: .output, promise: nil)
        context.read()
        context.eventLoop.assumeIsolated().scheduleTask(in: Self.lingering) { context.close(promise: nil) }
    }
}

/// The rules of RFC 9112 for a request's head: connection persistence, body framing and the effective authority.
package enum RequestHeadRules {
    /// Properties of a request that its response depends on.
    package struct Exchange: Equatable, Sendable {
        /// The client speaks HTTP/1.0 and does not understand chunks.
        package let isHTTP10: Bool
        /// The connection is closed after the response.
        package var isLast: Bool
        /// The client waits for 100 (Continue) before it sends the body (RFC 9110 §10.1.1).
        package var awaitsContinue: Bool

        package init(isHTTP10: Bool, isLast: Bool, awaitsContinue: Bool) {
            self.isHTTP10 = isHTTP10
            self.isLast = isLast
            self.awaitsContinue = awaitsContinue
        }
    }

    /// Checks `head` and normalizes it: a target in origin form, the effective authority in `Host`, and
    /// `Connection: close` where the connection ends after the response.
    /// - Parameter ownAuthority: host and port for HTTP/1.0 requests without a Host field (RFC 9112 §3.3).
    /// - Throws: `ControlProblem` 501 for a transfer coding other than `chunked`, or any in HTTP/1.0 (§6.1), and 421
    ///   for
    ///   a target of another scheme.
    package static func check(
        _ head: inout HTTPRequestHead, ownAuthority: String?
    ) throws(ControlProblem) -> Exchange {
        let isHTTP10 = head.version == .http1_0
        try Self.checkCodings(
            head.headers[canonicalForm: "Transfer-Encoding"].map { $0.lowercased() }, isHTTP10: isHTTP10)
        try Self.readTarget(&head, isHTTP10: isHTTP10)
        if isHTTP10, !head.headers.contains(name: "Host"), let ownAuthority {
            head.headers.add(name: "Host", value: ownAuthority)
        }
        // HTTP/1.0 has no upgrades (RFC 9110 §7.8).
        if isHTTP10 { head.headers.remove(name: "Upgrade") }
        let options = head.headers[canonicalForm: "Connection"].map { $0.lowercased() }
        // RFC 9112 §9.3.
        let isLast = options.contains("close") || (isHTTP10 && !options.contains("keep-alive"))
        if isLast { head.headers.replaceOrAdd(name: "Connection", value: "close") }
        return Exchange(
            isHTTP10: isHTTP10, isLast: isLast, awaitsContinue: !isHTTP10 && Self.expectsContinue(head.headers))
    }

    /// A request without a body expects nothing.
    private static func expectsContinue(_ fields: HTTPHeaders) -> Bool {
        fields[canonicalForm: "Expect"].contains { $0.lowercased() == "100-continue" }
            && (fields.contains(name: "Transfer-Encoding") || fields["Content-Length"].contains { $0 != "0" })
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
                501, "unsupported-transfer-coding", "The only supported transfer coding is chunked.")
        }
    }

    /// The authority of a target in absolute form replaces `Host` (RFC 9112 §3.2.2). The number of Host fields is
    /// checked later: HTTP/1.1 requires exactly one in any case (§3.2).
    private static func readTarget(_ head: inout HTTPRequestHead, isHTTP10: Bool) throws(ControlProblem) {
        guard head.method != .CONNECT, head.uri.first != "/", let mark = head.uri.firstRange(of: "://") else { return }
        guard ["http", "https"].contains(head.uri[..<mark.lowerBound].lowercased()) else {
            throw ControlProblem(421, "unknown-scheme", "The target must be an http or https URL.")
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

/// Closes a connection whose request head takes too long: the first one counts from accept, TLS handshake included,
/// every other from its first byte.
final class RequestHeadTimeoutHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    private static let limit = TimeAmount.seconds(20)

    let slot: ConnectionSlot?
    private var timer: Scheduled<Void>?
    /// Whether a head was received and its request has not ended.
    private var isInRequest = false

    init(_ slot: ConnectionSlot?) {
        self.slot = slot
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

    fileprivate func headReceived() {
        self.isInRequest = true
        self.disarm()
    }

    fileprivate func requestReceived() {
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

/// Reports the bounds of requests to the `RequestHeadTimeoutHandler`, and ends of responses to the `ConnectionSlot`.
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

/// Adds a problem document to the bare 400 with which the HTTP server refuses a malformed request.
final class BadRequestProblemHandler: ChannelOutboundHandler, RemovableChannelHandler {
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = HTTPResponsePart

    private static let problem = ControlProblem(
        400, "malformed-request",
        """
        The request is not valid HTTP/1.1 (RFC 9112), or its head exceeds 32 KiB or 128 fields, or a field exceeds 16 KiB.
        """
    )

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard case .head(var head) = self.unwrapOutboundIn(data), head.status == .badRequest,
            head.headerFields[.contentLength] == "0", head.headerFields[.connection] == "close"
        else { return context.write(data, promise: promise) }
        let document = Self.problem.body
        head.headerFields[.contentLength] = "\(document.readableBytes)"
        head.headerFields[.contentType] = "application/problem+json"
        head.headerFields[.cacheControl] = "no-store"
        head.headerFields[.date] = HTTPDate.now.formatted
        context.write(self.wrapOutboundOut(.head(head)), promise: nil)
        context.write(self.wrapOutboundOut(.body(document)), promise: promise)
    }
}
