import ByteKernels
import NIOCore
import StreamTransport

/// An upgraded connection of the REST server as a transport: its socket and its TLS stay on NIO's event loop, its
/// consumer runs on a `Loop`.
///
/// Crossing between the loops costs one task for each turn and direction, not one for each write.
final class UpgradedTransport: @unchecked Sendable {
    let loop: Loop
    var consumer: (any TransportConsumer)?
    let localAddress: StreamTransport.SocketAddress?
    let peerAddress: StreamTransport.SocketAddress?
    /// Has no effect: NIO's loop sizes its own reads.
    var readLimit = Loop.receiveCapacity

    private let flow: UpgradedFlow
    private var machine = UpgradedMachine()
    private var turnEndRequest = TurnEndRequest.none
    /// Received, and not offered yet or left by the consumer.
    private var unconsumed: [UInt8] = []
    private var writeBuffer: [UInt8] = []
    private var acceptedBytes: UInt64 = 0
    private var completedBytes: UInt64 = 0
    private var mustReportProgress = false

    /// Takes the bytes of `channel` over from HTTP. Once, on the thread of `loop`.
    static func start(_ channel: any Channel, wire: UpgradableWire, on loop: Loop) -> UpgradedTransport {
        let flow = UpgradedFlow(channel, wire: wire)
        let transport = UpgradedTransport(flow, of: channel, on: loop)
        flow.begin(transport)
        return transport
    }

    private init(_ flow: UpgradedFlow, of channel: any Channel, on loop: Loop) {
        self.flow = flow
        self.loop = loop
        self.localAddress = channel.localAddress.flatMap { StreamTransport.SocketAddress($0) }
        self.peerAddress = channel.remoteAddress.flatMap { StreamTransport.SocketAddress($0) }
    }

    private func endTurnLater() {
        guard case .none = self.turnEndRequest else { return }
        self.turnEndRequest = .requested
        self.loop.atTurnEnd(self)
    }

    // MARK: From the channel

    fileprivate func bytesArrived(_ bytes: [UInt8]) {
        self.machine.bytesArrived()
        self.unconsumed += bytes
        self.offerInput()
    }

    fileprivate func peerFinished() {
        self.machine.peerFinished()
        self.offerInput()
    }

    fileprivate func didWrite(_ count: Int) {
        self.completedBytes += UInt64(count)
        guard !self.machine.hasEnded, self.mustReportProgress || self.completedBytes < self.acceptedBytes else {
            return
        }
        if self.completedBytes == self.acceptedBytes { self.mustReportProgress = false }
        self.consumer?.outputProgressed()
    }

    fileprivate func ended(_ end: TransportEnd) {
        switch self.machine.channelEnded(end) {
        case .ignore: break
        case .offerInput: self.offerInput()
        case .offerInputAndEnd:
            self.resumeReading()
            self.offerInput()
            self.reportEnd()
        }
    }

    private func reportEnd() {
        guard let end = self.machine.takeEnd() else { return }
        let consumer = self.consumer
        self.consumer = nil
        consumer?.transportEnded(end)
    }

    private func offerInput() {
        if !self.unconsumed.isEmpty, self.machine.gate.admitsInput {
            self.machine.gate.offerBegan()
            self.offerUnconsumed()
        }
        self.continueReading()
    }

    /// Within an offer of the gate.
    private func offerUnconsumed() {
        var bytes: [UInt8] = []
        swap(&bytes, &self.unconsumed)
        // A turn may have been requested for the end of input alone.
        if !bytes.isEmpty {
            let used = bytes.withMutableRawSpan { self.consumer?.bytesReceived(&$0) ?? $0.byteCount }
            bytes.removeFirst(min(max(0, used), bytes.count))
        }
        switch self.machine.gate.offerEnded(leavesBytes: !bytes.isEmpty, budgetIsSpent: self.loop.budgetIsSpent) {
        case .keep: self.unconsumed = bytes
        case .keepAndRequestTurn:
            self.unconsumed = bytes
            self.loop.inNextTurn(self)
        case .drop: break
        }
    }

    private func continueReading() {
        if self.unconsumed.isEmpty, self.machine.reportInputEnd() { self.consumer?.inputClosed() }
        if self.machine.requestRead() { self.flow.read() }
    }

    private func flush() {
        guard !self.writeBuffer.isEmpty else { return }
        var bytes: [UInt8] = []
        swap(&bytes, &self.writeBuffer)
        self.flow.write(bytes)
    }
}

extension UpgradedTransport: TurnEndTarget {
    func nextTurnBegan() {
        switch self.machine.turnBegan() {
        case .ignore: break
        case .offerKept:
            self.offerUnconsumed()
            self.continueReading()
        }
        self.reportEnd()
    }

    func turnEnded() {
        self.turnEndRequest = .none
        self.flush()
        if self.mustReportProgress, self.completedBytes == self.acceptedBytes, !self.machine.hasEnded {
            self.mustReportProgress = false
            self.consumer?.outputProgressed()
        }
    }
}

extension UpgradedTransport: Transport {
    @discardableResult
    func write(_ bytes: RawSpan) -> Int {
        guard self.machine.acceptsOutput, bytes.byteCount > 0 else { return self.queuedBytes }
        self.acceptedBytes += UInt64(bytes.byteCount)
        self.writeBuffer.append(bytes)
        self.endTurnLater()
        return self.queuedBytes
    }

    @discardableResult
    func write(reserving count: Int, _ fill: (inout MutableRawSpan) -> Int) -> Int {
        guard self.machine.acceptsOutput, count > 0 else { return self.queuedBytes }
        let start = self.writeBuffer.count
        self.writeBuffer.append(contentsOf: repeatElement(0, count: count))
        let used = self.writeBuffer.withMutableRawSpan { bytes in
            var room = bytes._mutatingExtracting(start..<(start + count))
            return max(0, min(count, fill(&room)))
        }
        self.writeBuffer.removeLast(count - used)
        self.acceptedBytes += UInt64(used)
        self.endTurnLater()
        return self.queuedBytes
    }

    @discardableResult
    func writeThrough(_ bytes: RawSpan) -> Int {
        self.write(bytes)
        self.flush()
        return self.queuedBytes
    }

    var queuedBytes: Int { Int(clamping: self.acceptedBytes - self.completedBytes) }
    var writtenBytes: UInt64 { self.acceptedBytes }
    var sentBytes: UInt64 { self.completedBytes }

    /// Acknowledged bytes are those that the channel took: it takes more only as the peer reads.
    var delivery: OutputDelivery? {
        OutputDelivery(
            written: Int64(truncatingIfNeeded: self.acceptedBytes),
            acknowledged: Int64(truncatingIfNeeded: self.completedBytes),
            isHeldUp: self.acceptedBytes > self.completedBytes, window: nil)
    }

    func awaitProgress() {
        guard !self.machine.hasEnded else { return }
        self.mustReportProgress = true
        self.endTurnLater()
    }

    func pauseReading() {
        self.machine.gate.pause()
    }

    func resumeReading() {
        switch self.machine.resume(keepsBytes: !self.unconsumed.isEmpty) {
        case .ignore: break
        case .read: if self.machine.requestRead() { self.flow.read() }
        case .readAndRequestTurn: self.loop.inNextTurn(self)
        }
    }

    func shutdownOutput() {
        self.flush()
        if self.machine.shutdownOutput() { self.flow.shutdownOutput() }
    }

    /// Stops reading: a NIO channel cannot shut down its input alone.
    func shutdownInput() {
        self.machine.gate.close()
    }

    func close(linger: Duration) {
        self.flush()
        switch self.machine.close(.closed) {
        case .ignore: break
        case .closeChannel: self.flow.close(linger: linger)
        case .requestTurn: self.loop.inNextTurn(self)
        }
    }

    /// Closes immediately. The kernel sends RST if unread bytes remain; otherwise the peer sees FIN, with TLS a
    /// truncation without close_notify.
    func reset() {
        self.writeBuffer = []
        switch self.machine.close(.abandoned) {
        case .ignore: break
        case .closeChannel: self.flow.abandon()
        case .requestTurn: self.loop.inNextTurn(self)
        }
    }

    /// Always `nil`: the descriptor belongs to NIO's event loop.
    func detach() -> DetachedSocket? {
        nil
    }
}

/// The half of an upgraded connection on NIO's event loop. Each call from the transport, and each notification to it,
/// is a task on the other loop.
final class UpgradedFlow: @unchecked Sendable {
    private let channel: any Channel
    private let wire: UpgradableWire
    /// Strong reference, released when the connection has ended.
    private var transport: UpgradedTransport?
    private var received: [UInt8] = []
    private var end = TransportEnd.closed
    private var discardsInput = false
    private var peerFinished = false

    fileprivate init(_ channel: any Channel, wire: UpgradableWire) {
        self.channel = channel
        self.wire = wire
    }

    private func onChannel(_ work: @escaping @Sendable () -> Void) {
        self.channel.eventLoop.execute(work)
    }

    private func onTransport(_ work: @escaping @Sendable (UpgradedTransport) -> Void) {
        guard let transport = self.transport else { return }
        transport.loop.execute { work(transport) }
    }

    // MARK: From the transport

    fileprivate func begin(_ transport: UpgradedTransport) {
        self.onChannel {
            self.transport = transport
            self.wire.becomeRaw(self)
            // The peer's FIN closes one direction only.
            self.channel.setOption(.allowRemoteHalfClosure, value: true).whenComplete { _ in }
            if !self.channel.isActive { self.rawConnectionEnded() }
        }
    }

    fileprivate func read() {
        self.onChannel { self.wire.context?.read() }
    }

    fileprivate func write(_ bytes: [UInt8]) {
        self.onChannel {
            guard let context = self.wire.context else { return }
            let promise = context.eventLoop.makePromise(of: Void.self)
            let count = bytes.count
            promise.futureResult.assumeIsolated().whenSuccess { self.onTransport { $0.didWrite(count) } }
            context.writeAndFlush(NIOAny(IOData.byteBuffer(ByteBuffer(bytes: bytes))), promise: promise)
        }
    }

    fileprivate func shutdownOutput() {
        self.onChannel { self.wire.context?.close(mode: .output, promise: nil) }
    }

    /// Closes the output, discards further input, and closes when the peer has finished too or `linger` has passed.
    fileprivate func close(linger: Duration) {
        self.onChannel {
            self.discardsInput = true
            guard let context = self.wire.context else { return }
            context.close(mode: .output, promise: nil)
            if self.peerFinished { return self.channel.close(promise: nil) }
            context.read()
            context.eventLoop.assumeIsolated().scheduleTask(in: .bounded(linger)) { self.channel.close(promise: nil) }
        }
    }

    fileprivate func abandon() {
        self.onChannel {
            self.end = .abandoned
            self.channel.close(promise: nil)
        }
    }

    private func forwardReceived() {
        guard !self.received.isEmpty else { return }
        let bytes = self.received
        self.received = []
        self.onTransport { $0.bytesArrived(bytes) }
    }
}

/// Called by `UpgradableWire`.
extension UpgradedFlow {
    func rawBytesReceived(_ bytes: ByteBuffer) {
        guard !self.discardsInput else { return }
        self.received.append(bytes.readableBytesSpan)
    }

    func rawReadCompleted() {
        // A read of TLS records may give no plaintext.
        if self.discardsInput || self.received.isEmpty {
            self.wire.context?.read()
        } else {
            self.forwardReceived()
        }
    }

    func rawInputClosed() {
        self.peerFinished = true
        self.forwardReceived()
        if self.discardsInput { self.channel.close(promise: nil) }
        self.onTransport { $0.peerFinished() }
    }

    func rawErrorCaught(_ error: any Error) {
        self.end = .failed(TransportFailure(error))
        self.channel.close(promise: nil)
    }

    func rawConnectionEnded() {
        self.forwardReceived()
        let end = self.end
        self.onTransport { $0.ended(end) }
        self.transport = nil
    }
}

extension StreamTransport.SocketAddress {
    /// - Returns: `nil` for a Unix socket.
    init?(_ address: NIOCore.SocketAddress) {
        guard let text = address.ipAddress, let port = address.port else { return nil }
        self.init(literal: text, port: UInt16(clamping: port))
    }
}

extension TransportFailure {
    /// Maps an error of an open channel.
    fileprivate init(_ error: any Error) {
        switch error {
        case let failure as TransportFailure: self = failure
        case let error as IOError:
            let system = SystemError(error.errnoCode)
            switch system {
            case .reset, .brokenPipe: self = .reset
            case .timedOut: self = .peerUnresponsive
            default: self = .system(system)
            }
        default: self = .system(.notConnected)
        }
    }
}

extension TimeAmount {
    /// At most a year, so that no deadline overflows the clock.
    fileprivate static func bounded(_ duration: Duration) -> TimeAmount {
        TimeAmount(min(max(duration, .zero), .seconds(365 * 86_400)))
    }
}
