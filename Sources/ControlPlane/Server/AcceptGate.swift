import GatewayCore
import NIOCore
import StreamTransport

/// In the pipeline of the listening channel: accepts while there are descriptors to spare, and tries again in a while where
/// there are none. Newcomers wait in the kernel's queue.
final class AcceptGate: ChannelDuplexHandler {
    typealias InboundIn = any Channel
    typealias InboundOut = any Channel
    typealias OutboundIn = Never

    private static let pause = TimeAmount.milliseconds(50)

    private let reserve: DescriptorReserve
    private let log: TunnelLog
    /// Owed to the channel when there is room again.
    private var timer: Scheduled<Void>?
    private var hasLogged = false

    init(_ reserve: DescriptorReserve, log: TunnelLog) {
        self.reserve = reserve
        self.log = log
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.timer?.cancel()
        self.timer = nil
    }

    func read(context: ChannelHandlerContext) {
        guard self.timer == nil else { return }
        guard self.reserve.look() else { return self.wait(context) }
        context.read()
    }

    /// What accept(2) met. It must not go on: behind it the server takes any error for its end.
    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard let error = error as? IOError, SystemError(error.errnoCode).isExhaustion else {
            return context.fireErrorCaught(error)
        }
        if error.errnoCode == SystemError.processDescriptorsExhausted.number { self.reserve.exhausted() }
        self.wait(context)
    }

    /// Not only the next read is held back: one that is under way would meet the same error in every turn of its loop.
    private func wait(_ context: ChannelHandlerContext) {
        guard self.timer == nil else { return }
        if !self.hasLogged {
            self.hasLogged = true
            self.log.note(
                "the control plane accepts no connections for now: \(SystemError.processDescriptorsExhausted)",
                level: .warning)
        }
        try? context.channel.syncOptions?.setOption(.autoRead, value: false)
        self.timer = context.eventLoop.assumeIsolated().scheduleTask(in: Self.pause) { self.retry(context) }
    }

    private func retry(_ context: ChannelHandlerContext) {
        self.timer = nil
        guard context.channel.isActive else { return }
        guard self.reserve.look() else { return self.wait(context) }
        self.hasLogged = false
        try? context.channel.syncOptions?.setOption(.autoRead, value: true)
        context.read()
    }
}
