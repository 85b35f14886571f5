import Glibc
import HTTPTransport
import NIOCore
import TLSEngine

/// One connection of a `WebServer`, as the last handler of its channel.
final class WebConnection: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let shared: WebServer.Shared
    private let number: Int
    private var reader = RequestReader()
    private var steps: ArraySlice<Answer.Step> = []
    private var isBusy = false
    private var isWaiting = false
    private var wasEarly = false
    private var isOver = false
    private var turn = 0

    init(_ shared: WebServer.Shared, _ channel: any Channel) {
        self.shared = shared
        self.number = shared.with { state in
            let number = state.connections
            state.connections += 1
            state.channels[number] = channel
            return number
        }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if let facts = event as? TLSMetadata { self.shared.with { $0.facts[self.number] = facts } }
        if event as? ChannelEvent == .inputClosed {
            self.ended()
            if !self.isBusy { context.close(promise: nil) }
        }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let bytes = self.unwrapInboundIn(data)
        self.shared.with { $0.bytesReceived += bytes.readableBytes }
        self.reader.add(bytes.readableBytesView)
        self.serve(context)
    }

    func channelInactive(context: ChannelHandlerContext) {
        self.ended()
        let number = self.number
        self.shared.with { $0.channels[number] = nil }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        self.ended()
        context.close(promise: nil)
    }

    private func ended() {
        let number = self.number
        let gate = self.shared.with { state -> Gate in
            let gate = state.ended[number] ?? Gate()
            state.ended[number] = gate
            return gate
        }
        gate.open()
    }

    // MARK: Requests

    private func serve(_ context: ChannelHandlerContext) {
        while !self.isBusy, !self.isOver, let event = self.reader.next() {
            switch event {
            case .head(var request):
                request.connection = self.number
                request.turn = self.turn
                self.headReceived(request, context)
            case .whole(var request):
                request.connection = self.number
                request.turn = self.turn
                self.turn += 1
                self.wholeReceived(request, context)
            case .garbage: self.answer(.raw("HTTP/1.1 400 Garbage\r\nContent-Length: 0\r\n\r\n").closing, context)
            }
        }
    }

    private func headReceived(_ request: ReceivedRequest, _ context: ChannelHandlerContext) {
        guard let route = self.shared.with({ $0.routes[request.path] }), route.isEarly else { return }
        self.wasEarly = true
        self.answer(route.script(request), context)
    }

    private func wholeReceived(_ request: ReceivedRequest, _ context: ChannelHandlerContext) {
        let route = self.shared.with { $0.routes[request.path] }
        if !self.wasEarly {
            let answer = route?.script(request) ?? .text("nothing here", status: 404)
            self.note(request)
            return self.answer(answer, context)
        }
        self.wasEarly = false
        self.note(request)
    }

    private func note(_ request: ReceivedRequest) {
        let gates = self.shared.with { state -> [Gate] in
            state.requests.append(request)
            let count = state.requests.count
            let due = state.arrivals.filter { $0.count <= count }.map(\.gate)
            state.arrivals.removeAll { $0.count <= count }
            return due
        }
        for gate in gates { gate.open() }
    }

    // MARK: Steps

    private func answer(_ answer: Answer, _ context: ChannelHandlerContext) {
        self.steps = answer.steps[...]
        self.isBusy = true
        self.run(context)
    }

    private func run(_ context: ChannelHandlerContext) {
        while !self.isWaiting, let step = self.steps.popFirst() { self.perform(step, context) }
        guard !self.isWaiting, self.steps.isEmpty, self.isBusy else { return }
        self.isBusy = false
        // Deeper calls would only pile up: those behind are served by the loop that is under way.
        context.eventLoop.assumeIsolated().execute { self.serve(context) }
    }

    private func perform(_ step: Answer.Step, _ context: ChannelHandlerContext) {
        switch step {
        case .send(let bytes): context.writeAndFlush(self.wrapOutboundOut(ByteBuffer(bytes: bytes)), promise: nil)
        case .open(let gate): gate.open()
        case .hang: self.isOver = true
        case .close:
            self.isOver = true
            context.close(mode: .output, promise: nil)
        case .reset:
            self.isOver = true
            self.reset(context)
        case .cut:
            self.isOver = true
            // From the handler's own place on outwards, so that it does not see it.
            try? context.pipeline.syncOperations.context(handlerType: SecureHandler.self).close(promise: nil)
        case .stopReading(let gate):
            self.setReading(false, context)
            self.onceOpen(gate, context) { [self] in self.setReading(true, $0) }
        case .wait(let gate):
            self.isWaiting = true
            self.onceOpen(gate, context) { [self] in
                self.isWaiting = false
                self.run($0)
            }
        }
    }

    private func setReading(_ isReading: Bool, _ context: ChannelHandlerContext) {
        context.channel.setOption(.autoRead, value: isReading).whenComplete { _ in }
    }

    private func onceOpen(
        _ gate: Gate, _ context: ChannelHandlerContext, _ work: @escaping (ChannelHandlerContext) -> Void
    ) {
        let bound = NIOLoopBound((context, work), eventLoop: context.eventLoop)
        let eventLoop = context.eventLoop
        gate.whenOpen { eventLoop.execute { bound.value.1(bound.value.0) } }
    }

    private func reset(_ context: ChannelHandlerContext) {
        let options = context.channel as? any SocketOptionProvider
        let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
        options?.setSoLinger(linger(l_onoff: 1, l_linger: 0)).whenComplete { _ in bound.value.close(promise: nil) }
    }
}
