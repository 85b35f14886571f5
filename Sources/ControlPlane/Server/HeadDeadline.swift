import NIOCore

/// Ends a connection whose request does not come: the head of the first one must be there soon after the connection,
/// its TLS handshake included, and that of every other soon after its first byte.
final class HeadDeadline: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    static let limit = TimeAmount.seconds(20)

    /// Of the connection.
    let place: ConnectionPlace?
    private var timer: Scheduled<Void>?
    /// Between a head and the end of its request.
    private var isInRequest = false

    init(_ place: ConnectionPlace?) {
        self.place = place
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
