import NIOCore
import StreamTransport

/// A server's handler below its HTTP codec and above TLS. It forwards everything until a consumer takes the connection
/// over; from then on bytes bypass HTTP, and what HTTP still writes is discarded.
///
/// It also reports when the client has disconnected, which the HTTP codec does not report to a long-running request.
package final class UpgradableWire: ChannelDuplexHandler, RemovableChannelHandler, RawWire {
    package typealias InboundIn = ByteBuffer
    package typealias InboundOut = ByteBuffer
    package typealias OutboundIn = IOData
    package typealias OutboundOut = IOData

    private(set) var context: ChannelHandlerContext?
    private var rawConsumer: (any RawBytesConsumer)?
    private var isRaw = false
    private let clientGonePromise: EventLoopPromise<Void>

    package init(on eventLoop: any EventLoop) {
        self.clientGonePromise = eventLoop.makePromise()
    }

    /// Succeeds when the client has closed its side, or the connection is over.
    package var clientGone: EventLoopFuture<Void> { self.clientGonePromise.futureResult }

    package func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
    }

    package func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
        self.rawConsumer = nil
        self.clientGonePromise.succeed()
    }

    func becomeRaw(_ consumer: any RawBytesConsumer) -> ByteBuffer {
        self.isRaw = true
        self.rawConsumer = consumer
        return ByteBuffer()
    }

    // MARK: Received

    package func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard self.isRaw else { return context.fireChannelRead(data) }
        self.rawConsumer?.rawBytesReceived(self.unwrapInboundIn(data))
    }

    package func channelReadComplete(context: ChannelHandlerContext) {
        guard self.isRaw else { return context.fireChannelReadComplete() }
        self.rawConsumer?.rawReadCompleted()
    }

    package func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if event as? ChannelEvent == .inputClosed {
            self.clientGonePromise.succeed()
            if self.isRaw {
                self.rawConsumer?.rawInputClosed()
                return
            }
        }
        context.fireUserInboundEventTriggered(event)
    }

    package func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard self.isRaw else { return context.fireErrorCaught(error) }
        self.rawConsumer?.rawErrorCaught(error)
    }

    package func channelInactive(context: ChannelHandlerContext) {
        self.clientGonePromise.succeed()
        let consumer = self.rawConsumer
        self.rawConsumer = nil
        consumer?.rawConnectionEnded()
        context.fireChannelInactive()
    }

    // MARK: Sent

    /// A raw consumer reads from the context below this handler instead.
    package func read(context: ChannelHandlerContext) {
        if !self.isRaw { context.read() }
    }

    package func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard self.isRaw else { return context.write(data, promise: promise) }
        promise?.succeed()
    }

    package func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        // HTTP closes its output after its response; the raw connection stays open.
        if self.isRaw, mode == .output { promise?.succeed() } else { context.close(mode: mode, promise: promise) }
    }

    /// A reference to the handler that may be passed between threads.
    package struct Reference: @unchecked Sendable {
        let wire: UpgradableWire

        package init(_ wire: UpgradableWire) {
            self.wire = wire
        }

        package var clientGone: EventLoopFuture<Void> { self.wire.clientGone }

        /// Makes the connection a paused transport of `loop`; HTTP is over on it. Once, on that loop's thread.
        package func transport(of channel: any Channel, on loop: Loop) -> any Transport {
            var metadata = ConnectionMetadata()
            metadata.localAddress = channel.localAddress.flatMap { StreamTransport.SocketAddress($0) }
            metadata.peerAddress = channel.remoteAddress.flatMap { StreamTransport.SocketAddress($0) }
            return UpgradedTransport.start(channel, wire: self.wire, on: loop, metadata: metadata)
        }
    }
}

/// A handler below a connection's HTTP codec that can redirect the bytes past the codec. On its event loop.
protocol RawWire: AnyObject {
    var context: ChannelHandlerContext? { get }
    /// Delivers received bytes to `consumer` from now on.
    /// - Returns: the bytes received before.
    func becomeRaw(_ consumer: any RawBytesConsumer) -> ByteBuffer
}

extension WireHandler: RawWire {}
