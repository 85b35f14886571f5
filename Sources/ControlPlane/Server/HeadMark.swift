import NIOCore
import NIOHTTPTypes

/// Tells the connection's `HeadDeadline` where requests begin and end, and its place where answers do.
final class HeadMark: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPRequestPart
    typealias InboundOut = HTTPRequestPart
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = HTTPResponsePart

    private var deadline: HeadDeadline?

    func handlerAdded(context: ChannelHandlerContext) {
        self.deadline = try? context.pipeline.syncOperations.handler(type: HeadDeadline.self)
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
        if case .end = self.unwrapOutboundIn(data) { self.deadline?.place?.answered() }
        context.write(data, promise: promise)
    }
}
