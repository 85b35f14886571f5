import HTTPTypes
import NIOCore
import NIOHTTPTypes

/// Says why, where HTTP itself refuses a request that it cannot read, and would with a bare 400.
final class RefusalDocument: ChannelOutboundHandler, RemovableChannelHandler {
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
