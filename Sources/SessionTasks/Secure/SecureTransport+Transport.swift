import ByteKernels
import StreamTransport
import TLSEngine

extension SecureTransport: Transport {
    package var loop: Loop { self.lower.loop }
    package var localAddress: SocketAddress? { self.lower.localAddress }
    package var peerAddress: SocketAddress? { self.lower.peerAddress }

    package var readLimit: Int {
        get { self.lower.readLimit }
        set { self.lower.readLimit = newValue }
    }

    @discardableResult
    package func write(_ bytes: RawSpan) -> Int {
        self.write(LeadingBytes(0, count: 0), bytes)
    }

    @discardableResult
    package func write(_ head: LeadingBytes, _ bytes: RawSpan) -> Int {
        let count = head.count + bytes.byteCount
        guard self.machine.acceptsOutput, count > 0 else { return self.queuedBytes }
        self.claimGathered()
        self.acceptedBytes &+= UInt64(count)
        for index in 0..<head.count { self.pendingPlaintext.append(head[index]) }
        self.pendingPlaintext.append(bytes)
        if self.pendingPlaintext.count >= SecureTransport.plaintextBufferLimit { self.flush() }
        return self.queuedBytes
    }

    @discardableResult
    package func write(reserving count: Int, _ fill: (inout MutableRawSpan) -> Int) -> Int {
        guard self.machine.acceptsOutput, count > 0 else { return self.queuedBytes }
        self.claimGathered()
        let start = self.pendingPlaintext.count
        self.pendingPlaintext.append(contentsOf: repeatElement(0, count: count))
        let used = self.pendingPlaintext.withMutableRawSpan { bytes in
            var room = bytes._mutatingExtracting(start..<(start + count))
            return max(0, min(count, fill(&room)))
        }
        self.pendingPlaintext.removeLast(count - used)
        self.acceptedBytes &+= UInt64(used)
        if self.pendingPlaintext.count >= SecureTransport.plaintextBufferLimit { self.flush() }
        return self.queuedBytes
    }

    private func claimGathered() {
        guard self.pendingPlaintext.isEmpty else { return }
        self.pendingPlaintext = self.loop.takeSpareBuffer()
        self.endTurnLater()
    }

    @discardableResult
    package func writeThrough(_ bytes: RawSpan) -> Int {
        guard self.machine.acceptsOutput, bytes.byteCount > 0 else { return self.queuedBytes }
        guard self.machine.isEstablished else { return self.write(bytes) }
        self.flush()
        self.acceptedBytes &+= UInt64(bytes.byteCount)
        self.encrypt(bytes)
        return self.queuedBytes
    }

    package var outputStall: OutputStall { self.lower.outputStall }
    package func limitUnsent(to limit: Int) { self.lower.limitUnsent(to: limit) }
    package var delivery: OutputDelivery? {
        self.lower.delivery.map { lower in
            var delivery = lower
            delivery.isHeldUp = lower.isHeldUp || !self.pendingPlaintext.isEmpty
            return delivery
        }
    }

    package var queuedBytes: Int { self.lower.queuedBytes + self.pendingPlaintext.count }
    package var writtenBytes: UInt64 { self.acceptedBytes }
    package var sentBytes: UInt64 { self.confirmedBytes() }

    package func pauseReading() {
        if self.machine.pause() { self.lower.pauseReading() }
    }

    package func resumeReading() {
        switch self.machine.resume() {
        case .ignore: break
        case .read: self.lower.resumeReading()
        case .requestTurn: self.loop.inNextTurn(self)
        }
    }

    /// close_notify; the connection below stays whole, since TLS itself may still have to answer the peer.
    package func shutdownOutput() {
        guard self.machine.shutdownOutput() else { return }
        self.flush()
        self.connection.closeOutput()
        self.sendRecords()
    }

    /// TLS cannot refuse input: later input stays unread.
    package func shutdownInput() {
        self.lower.shutdownInput()
    }

    package func close(linger: Duration) {
        self.shutdownOutput()
        guard self.machine.close() else { return }
        self.lower.close(linger: linger)
    }

    package func reset() {
        _ = self.machine.close()
        self.lower.reset()
    }

    /// Never: there is no plain descriptor to give.
    package func detach() -> DetachedSocket? {
        nil
    }
}
