import NIOCore
import StreamTransport

/// A server's handler below its HTTP codec and above TLS. It forwards everything until a consumer takes the connection
/// over; from then on bytes bypass HTTP, and what HTTP still writes is discarded.
///
/// It also reports when the client has disconnected, which the HTTP codec does not report to a long-running request.
final class UpgradableWire: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = IOData
    typealias OutboundOut = IOData

    private(set) var context: ChannelHandlerContext?
    private var rawConsumer: (UpgradedFlow)?
    private var isRaw = false
    private let clientGonePromise: EventLoopPromise<Void>

    init(on eventLoop: any EventLoop) {
        self.clientGonePromise = eventLoop.makePromise()
    }

    /// Succeeds when the client has closed its side, or the connection is over.
    var clientGone: EventLoopFuture<Void> { self.clientGonePromise.futureResult }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
        self.rawConsumer = nil
        self.clientGonePromise.succeed()
    }

    /// Delivers received bytes to `consumer` from now on.
    func becomeRaw(_ consumer: UpgradedFlow) {
        self.isRaw = true
        self.rawConsumer = consumer
    }

    // MARK: Received

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard self.isRaw else { return context.fireChannelRead(data) }
        self.rawConsumer?.rawBytesReceived(self.unwrapInboundIn(data))
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        guard self.isRaw else { return context.fireChannelReadComplete() }
        self.rawConsumer?.rawReadCompleted()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if event as? ChannelEvent == .inputClosed {
            self.clientGonePromise.succeed()
            if self.isRaw {
                self.rawConsumer?.rawInputClosed()
                return
            }
        }
        context.fireUserInboundEventTriggered(event)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard self.isRaw else { return context.fireErrorCaught(error) }
        self.rawConsumer?.rawErrorCaught(error)
    }

    func channelInactive(context: ChannelHandlerContext) {
        self.clientGonePromise.succeed()
        let consumer = self.rawConsumer
        self.rawConsumer = nil
        consumer?.rawConnectionEnded()
        context.fireChannelInactive()
    }

    // MARK: Sent

    /// A raw consumer reads from the context below this handler instead.
    func read(context: ChannelHandlerContext) {
        if !self.isRaw { context.read() }
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard self.isRaw else { return context.write(data, promise: promise) }
        promise?.succeed()
    }

    func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        // HTTP closes its output after its response; the raw connection stays open.
        if self.isRaw, mode == .output { promise?.succeed() } else { context.close(mode: mode, promise: promise) }
    }

    /// A reference to the handler that may be passed between threads.
    struct Reference: @unchecked Sendable {
        let wire: UpgradableWire

        var clientGone: EventLoopFuture<Void> { self.wire.clientGone }

        /// Makes the connection a paused transport of `loop`; HTTP is over on it. Once, on that loop's thread.
        func transport(of channel: any Channel, on loop: Loop) -> any Transport {
            UpgradedTransport.start(channel, wire: self.wire, on: loop)
        }
    }
}
