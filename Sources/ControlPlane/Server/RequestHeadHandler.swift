import DequeModule
import NIOCore
import NIOHTTP1

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
        if exchange.isOld, !hasEnd {
            // Without chunks only the end of the connection is the end of the body (RFC 9112 §6.3); the encoder chunks
            // where the answer is of HTTP/1.1.
            head.version = .http1_0
            exchange.isLast = true
        }
        exchange.isLast = exchange.isLast || asksForClose
        if exchange.isLast {
            head.headers.replaceOrAdd(name: "Connection", value: "close")
            self.hasLast = true
        } else if exchange.isOld {
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
