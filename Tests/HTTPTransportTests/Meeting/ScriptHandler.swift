import Glibc
import HTTPTransport
import NIOCore
import TLSEngine

/// Performs one connection's script.
final class ScriptHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private var steps: ArraySlice<RawServer.Step>
    private let log: RawServer.Log
    private let index: Int
    private var isReady: Bool
    private var heard: [UInt8] = []

    init(_ steps: [RawServer.Step], log: RawServer.Log, index: Int, waitsForTLS: Bool) {
        self.steps = steps[...]
        self.log = log
        self.index = index
        self.isReady = !waitsForTLS
    }

    func channelActive(context: ChannelHandlerContext) {
        self.run(context)
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if event as? ChannelEvent == .inputClosed { self.log.end(self.index) }
        guard event is TLSMetadata else { return }
        self.isReady = true
        self.run(context)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let bytes = Array(self.unwrapInboundIn(data).readableBytesView)
        self.log.add(bytes, to: self.index)
        self.heard += bytes
        self.run(context)
    }

    func channelInactive(context: ChannelHandlerContext) {
        self.log.end(self.index)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }

    private func run(_ context: ChannelHandlerContext) {
        while self.isReady, let step = self.steps.first, self.perform(step, context) { self.steps.removeFirst() }
    }

    /// - Returns: whether the step is done.
    private func perform(_ step: RawServer.Step, _ context: ChannelHandlerContext) -> Bool {
        switch step {
        case .receive(let mark): return self.drop(through: Array(mark.utf8))
        case .receiveBytes(let count):
            guard self.heard.count >= count else { return false }
            self.heard.removeFirst(count)
        case .send(let text): context.writeAndFlush(self.wrapOutboundOut(ByteBuffer(string: text)), promise: nil)
        case .sendBytes(let bytes): context.writeAndFlush(self.wrapOutboundOut(ByteBuffer(bytes: bytes)), promise: nil)
        case .finish: context.close(mode: .output, promise: nil)
        case .close: context.close(promise: nil)
        case .reset:
            let options = context.channel as? any SocketOptionProvider
            let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
            options?.setSoLinger(linger(l_onoff: 1, l_linger: 0)).whenComplete { _ in
                bound.value.close(promise: nil)
            }
        case .cut:
            // From the handler's own place on outwards, so that it does not see it.
            try? context.pipeline.syncOperations.context(handlerType: SecureHandler.self).close(promise: nil)
        case .open(let gate): gate.open()
        case .wait(let gate):
            self.steps.removeFirst()
            self.isReady = false
            let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
            let eventLoop = context.eventLoop
            gate.whenOpen {
                eventLoop.execute {
                    bound.value.0.isReady = true
                    bound.value.0.run(bound.value.1)
                }
            }
            return false
        }
        return true
    }

    private func drop(through mark: [UInt8]) -> Bool {
        guard self.heard.count >= mark.count else { return false }
        for start in 0...(self.heard.count - mark.count) where self.heard[start...].starts(with: mark) {
            self.heard.removeFirst(start + mark.count)
            return true
        }
        return false
    }
}
