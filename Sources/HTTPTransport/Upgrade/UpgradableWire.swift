import NIOCore
import StreamTransport

/// A server's handler below its HTTP codec, above TLS: passes everything on until somebody takes the connection, whose
/// bytes then go past HTTP. What HTTP still writes then goes nowhere.
///
/// It also knows when the client is gone, which HTTP does not tell a request that takes long.
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

    /// Who has the raw bytes asks the context for them, below this handler.
    package func read(context: ChannelHandlerContext) {
        if !self.isRaw { context.read() }
    }

    package func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard self.isRaw else { return context.write(data, promise: promise) }
        promise?.succeed()
    }

    package func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        // HTTP is done with its side when its response is; the connection is not.
        if self.isRaw, mode == .output { promise?.succeed() } else { context.close(mode: mode, promise: promise) }
    }
}

extension UpgradableWire {
    /// The handler as it is passed about between threads.
    package struct Reference: @unchecked Sendable {
        let wire: UpgradableWire

        package init(_ wire: UpgradableWire) {
            self.wire = wire
        }

        package var clientGone: EventLoopFuture<Void> { self.wire.clientGone }

        /// Makes the connection a transport of `loop`, paused; HTTP is over on it. Once, on that loop's thread.
        package func transport(of channel: any Channel, on loop: Loop) -> any Transport {
            var metadata = ConnectionMetadata()
            metadata.localAddress = channel.localAddress.flatMap { StreamTransport.SocketAddress($0) }
            metadata.peerAddress = channel.remoteAddress.flatMap { StreamTransport.SocketAddress($0) }
            let flow = UpgradedFlow(channel, wire: self.wire)
            let transport = UpgradedTransport(flow, on: loop, metadata: metadata)
            flow.begin(transport)
            return transport
        }
    }
}

/// A handler below a connection's HTTP codec that can give the bytes to somebody else, past the codec. On its event loop.
protocol RawWire: AnyObject {
    var context: ChannelHandlerContext? { get }
    /// From now on `taker` has the bytes.
    /// - Returns: those that came before.
    func becomeRaw(_ consumer: any RawBytesConsumer) -> ByteBuffer
}

extension WireHandler: RawWire {}
