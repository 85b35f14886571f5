import ByteKernels
import StreamTransport
import WebSocketProtocol

/// Performs the handshake with a proxy on a connection. Confined to its loop.
final class ProxyTunnel {
    typealias Completion = (ProxyFailure?) -> Void
    /// Provides the fields of a request that is repeated on the same connection; `nil` gives up.
    typealias Authorize = (ResponseHead, _ completion: @escaping @Sendable ([FieldLine]?) -> Void) -> Void

    /// How long the content of a refusal may take, within the time for the handshake.
    private static let refusalTimeout = Duration.seconds(1)

    private let transport: any Transport
    private let timeout: Duration
    private var client: any ProxyClient
    private let authorize: Authorize
    /// `nil` after the end.
    private var completion: Completion?
    private var timer = HoldableTimer()
    /// Since when the time is held; `nil` while it is not.
    private var heldSince: MonotonicInstant?
    private var deadline = MonotonicInstant.distantFuture
    /// The timer is armed for the content of a refusal.
    private var isRefused = false

    /// - Parameters:
    ///   - transport: paused. It is paused again after success, without a consumer, and reset after a failure.
    ///   - completion: called once unless `cancel` comes first, with `nil` for success.
    init(
        _ client: any ProxyClient, on transport: any Transport, timeout: Duration, authorize: @escaping Authorize,
        completion: @escaping Completion
    ) {
        self.client = client
        self.authorize = authorize
        self.transport = transport
        self.timeout = timeout
        self.completion = completion
    }

    func begin() {
        self.transport.consumer = self
        self.deadline = self.transport.loop.now.advanced(by: self.timeout)
        self.timer.arm(after: self.timeout, on: self.transport.loop, target: self)
        self.perform(self.client.begin())
        self.transport.resumeReading()
    }

    /// Gives the handshake up; the completion is not called.
    func cancel() {
        self.completion = nil
        self.stop()
        self.transport.reset()
    }

    /// Whether the handshake's timeout is paused; the handshake itself continues.
    var isHeld: Bool {
        get { self.heldSince != nil }
        set {
            guard newValue != self.isHeld else { return }
            let now = self.transport.loop.now
            if let since = self.heldSince { self.deadline = self.deadline.advanced(by: since.duration(to: now)) }
            self.heldSince = newValue ? now : nil
            self.timer.setHeld(newValue, on: self.transport.loop, target: self)
        }
    }

    private func stop() {
        self.timer.disarm(on: self.transport.loop)
        self.transport.consumer = nil
    }

    private func perform(_ action: ProxyAction) {
        switch action {
        case .wait: break
        case .send(let bytes): bytes.withRawSpan { self.transport.write($0) }
        case .established:
            self.transport.pauseReading()
            self.finish(nil)
        case .authorize(let head):
            // Nothing may come before the next request: more bytes, or the end, end the handshake.
            let tunnel = LoopIsolated(self, on: self.transport.loop)
            self.authorize(head) { fields in
                tunnel.execute { tunnel in
                    guard tunnel.completion != nil else { return }
                    guard let fields else { return tunnel.fail(.refused(head, text: "")) }
                    tunnel.perform(tunnel.client.authorized(fields))
                }
            }
        case .fail(let failure): self.fail(failure)
        }
    }

    private func fail(_ failure: ProxyFailure) {
        guard self.completion != nil else { return }
        self.stop()
        self.transport.reset()
        self.finish(failure)
    }

    private func finish(_ failure: ProxyFailure?) {
        self.stop()
        let completion = self.completion
        self.completion = nil
        completion?(failure)
    }
}

extension ProxyTunnel: TransportConsumer {
    func bytesReceived(_ bytes: inout MutableRawSpan) -> Int {
        var consumed = 0
        while self.completion != nil {
            let action = self.client.bytesReceived(bytes.bytes, consumed: &consumed)
            self.updateTimer()
            if action == .wait { break }
            self.perform(action)
        }
        return consumed
    }

    /// A proxy that has refused must not keep the task waiting by content that does not end.
    private func updateTimer() {
        guard self.client.isRefused != self.isRefused else { return }
        self.isRefused.toggle()
        let left = (self.heldSince ?? self.transport.loop.now).duration(to: self.deadline)
        let timeout = self.isRefused ? min(left, Self.refusalTimeout) : left
        self.timer.arm(after: max(.zero, timeout), on: self.transport.loop, target: self)
    }

    func inputClosed() {
        self.perform(self.client.inputClosed())
    }

    func outputProgressed() {}

    func transportEnded(_ end: TransportEnd) {
        self.fail(end.transportFailure.map { .connection($0) } ?? .closed)
    }
}

extension ProxyTunnel: TimerTarget {
    func timerFired(_ timer: LoopTimer) {
        self.perform(self.client.deadlinePassed())
    }
}

/// Looks one name up with a deadline. Confined to its loop.
final class NameLookup {
    typealias Completion = (Result<[SocketAddress], TransportFailure>) -> Void

    private let loop: Loop
    private var ticket: ResolutionToken?
    /// `nil` after the end.
    private var completion: Completion?
    private var timer = HoldableTimer()

    /// Whether the timeout is paused; the lookup itself continues.
    var isHeld: Bool {
        get { self.timer.isHeld }
        set { self.timer.setHeld(newValue, on: self.loop, target: self) }
    }

    /// - Parameters:
    ///   - resolve: looks the name up; `nil` asks the system.
    ///   - completion: called once unless `cancel` comes first.
    init(
        _ host: String, port: UInt16, on loop: Loop, timeout: Duration, resolve: ConnectAttempt.Resolve?,
        completion: @escaping Completion
    ) {
        self.loop = loop
        self.completion = completion
        self.timer.arm(after: timeout, on: loop, target: self)
        guard let resolve else {
            self.ticket = loop.system.resolve(host, port: port) { self.finish($0.mapError { .nameResolution($0) }) }
            return
        }
        let lookup = LoopIsolated(self, on: loop)
        resolve(host, port) { result in
            lookup.execute { $0.finish(result.mapError { .nameResolution($0) }) }
        }
    }

    /// Gives the lookup up; the completion is not called.
    func cancel() {
        self.completion = nil
        if let ticket { self.loop.system.cancelResolution(ticket) }
        self.ticket = nil
        self.timer.disarm(on: self.loop)
    }

    private func finish(_ result: Result<[SocketAddress], TransportFailure>) {
        guard let completion = self.completion else { return }
        self.cancel()
        completion(result)
    }
}

extension NameLookup: TimerTarget {
    func timerFired(_ timer: LoopTimer) {
        self.finish(.failure(.deadlinePassed(.resolving)))
    }
}
