import ByteKernels
import NIOCore
import StreamTransport

/// The side of an upgraded connection that lives on NIO's loop. Every call of the transport goes over in a task of its
/// own, and every answer comes back in one.
final class UpgradedFlow: @unchecked Sendable {
    private let channel: any Channel
    private let wire: any RawWire
    /// Broken when the connection has ended.
    private var transport: UpgradedTransport?
    private var received: [UInt8] = []
    private var end = TransportEnd.closed
    private var discardsInput = false
    private var peerFinished = false

    init(_ channel: any Channel, wire: any RawWire) {
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

    func begin(_ transport: UpgradedTransport) {
        self.onChannel {
            self.transport = transport
            let early = self.wire.becomeRaw(self)
            // What the peer's FIN leaves is one direction.
            self.channel.setOption(.allowRemoteHalfClosure, value: true).whenComplete { _ in }
            if early.readableBytes > 0 {
                self.rawBytesReceived(early)
                self.tellReceived()
            }
            if !self.channel.isActive { self.rawConnectionEnded() }
        }
    }

    func read() {
        self.onChannel { self.wire.context?.read() }
    }

    func write(_ bytes: [UInt8]) {
        self.onChannel {
            guard let context = self.wire.context else { return }
            let promise = context.eventLoop.makePromise(of: Void.self)
            let count = bytes.count
            promise.futureResult.assumeIsolated().whenSuccess { self.onTransport { $0.wrote(count) } }
            context.writeAndFlush(NIOAny(IOData.byteBuffer(ByteBuffer(bytes: bytes))), promise: promise)
        }
    }

    func shutdownOutput() {
        self.onChannel { self.wire.context?.close(mode: .output, promise: nil) }
    }

    /// Finishes sending, throws away what still comes, and closes when the peer has finished too or `linger` is over.
    func close(linger: Duration) {
        self.onChannel {
            self.discardsInput = true
            guard let context = self.wire.context else { return }
            context.close(mode: .output, promise: nil)
            if self.peerFinished { return self.channel.close(promise: nil) }
            context.read()
            context.eventLoop.assumeIsolated().scheduleTask(in: .bounded(linger)) { self.channel.close(promise: nil) }
        }
    }

    func abandon() {
        self.onChannel {
            self.end = .abandoned
            self.channel.close(promise: nil)
        }
    }

    private func tellReceived() {
        guard !self.received.isEmpty else { return }
        let bytes = self.received
        self.received = []
        self.onTransport { $0.arrived(bytes) }
    }
}

extension UpgradedFlow: RawBytesTaker {
    func rawBytesReceived(_ bytes: ByteBuffer) {
        guard !self.discardsInput else { return }
        self.received.append(bytes.readableBytesSpan)
    }

    func rawReadCompleted() {
        if self.discardsInput {
            self.wire.context?.read()
        } else if self.received.isEmpty {
            // A read that held no plaintext.
            self.wire.context?.read()
        } else {
            self.tellReceived()
        }
    }

    func rawInputClosed() {
        self.peerFinished = true
        self.tellReceived()
        if self.discardsInput { self.channel.close(promise: nil) }
        self.onTransport { $0.peerFinished() }
    }

    func rawErrorCaught(_ error: any Error) {
        self.end = .failed(TransportFailure(error))
        self.channel.close(promise: nil)
    }

    func rawConnectionEnded() {
        self.tellReceived()
        let end = self.end
        self.onTransport { $0.ended(end) }
        self.transport = nil
    }
}
