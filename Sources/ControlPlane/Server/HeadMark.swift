import NIOCore
import NIOHTTPTypes

/// Tells the connection's `HeadDeadline` where requests begin and end.
final class HeadMark: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPRequestPart
    typealias InboundOut = HTTPRequestPart

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
}
