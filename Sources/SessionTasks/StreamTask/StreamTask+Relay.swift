import StreamTransport

/// The task as one end of a relay: its loop's code takes the bytes as they come and writes without queueing operations.
/// Everything here is on the loop, and the task still counts, shows its metadata and can be cancelled.
extension StreamTask {
    /// Directs the transport's events to `relay`; the read queue rests. Reading starts with `resumeReading`.
    package func attach(_ relay: any TransportConsumer) {
        self.loop.assertOnLoop()
        self.relay = relay
        self.disarm()
    }

    /// Writes at once what the kernel takes and queues the rest in the transport.
    /// - Returns: the bytes that wait there now.
    @discardableResult
    package func send(_ bytes: RawSpan) -> Int {
        guard let transport = self.transport else { return 0 }
        let queued = transport.writeThrough(bytes)
        self.sent(bytes)
        return queued
    }

    /// Writes at the end of the turn, together with what else is written in it.
    /// - Returns: the bytes that wait in the transport now.
    @discardableResult
    package func enqueue(_ bytes: RawSpan) -> Int {
        guard let transport = self.transport else { return 0 }
        let queued = transport.write(bytes)
        self.sent(bytes)
        return queued
    }

    /// Socket to which output may be spliced; `nil` while a tap with free space is attached.
    package var spliceDestination: SocketConnection? {
        self.canSplice ? self.transport?.socket : nil
    }

    /// So many bytes were spliced to `spliceDestination`.
    package func didSpliceOutput(_ count: Int) {
        self.recordUntapped()
        self.record.countSent(bytes: count, at: self.loop.now)
    }

    private func sent(_ bytes: RawSpan) {
        if self.isTapped { self.show(.sent, bytes) }
        self.record.countSent(bytes: bytes.byteCount, at: self.loop.now)
    }

    /// Bytes that the kernel took, of everything written on this connection.
    package var sentBytes: UInt64 {
        self.transport?.sentBytes ?? 0
    }

    /// Bytes written on this connection so far; 0 without one.
    package var writtenBytes: UInt64 {
        self.transport?.writtenBytes ?? 0
    }

    /// How long output waited for the peer to read; nothing once the connection is over.
    package var outputStall: OutputStall { self.transport?.outputStall ?? OutputStall() }

    package var queuedBytes: Int {
        self.transport?.queuedBytes ?? 0
    }

    /// Asks for one `outputProgressed` of the relay when all that was written has left.
    package func awaitProgress() {
        self.transport?.awaitProgress()
    }

    package func pauseReading() {
        self.loop.assertOnLoop()
        self.machine.relayReading = .paused
        self.transport?.pauseReading()
    }

    package func resumeReading() {
        self.loop.assertOnLoop()
        self.machine.relayReading = .wanted
        guard self.isRunning else { return }
        self.transport?.resumeReading()
    }

    /// Ends the output after all bytes written.
    package func finishOutput() {
        self.transport?.shutdownOutput()
    }

    /// Ends cleanly after all bytes written; later input is discarded for at most `linger`.
    package func close(linger: Duration) {
        self.transport?.close(linger: linger)
    }

    /// Ends with a reset: the peer must not take it for a clean end.
    package func reset() {
        self.transport?.reset()
    }

    /// Most bytes taken from the kernel in one read.
    package func setReadLimit(_ bytes: Int) {
        self.transport?.readLimit = bytes
    }
}

extension StreamTask {
    /// Attaches a tap. On the loop.
    package func add(_ tap: TaskTap) {
        guard !self.machine.hasEnded else { return }
        LoopTaskMetrics.shared(on: self.loop).add(tap, to: self.record)
        self.isTapped = true
    }

    package func remove(_ tap: TaskTap) {
        self.isTapped = LoopTaskMetrics.shared(on: self.loop).remove(tap, from: self.record)
    }

    /// Whether no tap is attached, or all are full: spliced bytes are counted as skipped.
    var canSplice: Bool {
        !self.isTapped || LoopTaskMetrics.shared(on: self.loop).areTapsFull(at: self.record)
    }

    func recordUntapped() {
        if self.isTapped { LoopTaskMetrics.shared(on: self.loop).recordUntapped(self.record) }
    }

    func show(_ way: TapPiece.Way, _ bytes: RawSpan) {
        LoopTaskMetrics.shared(on: self.loop).recordPiece(self.record, way, .stream, bytes)
    }
}

/// Properties that the control plane shows besides the task's record, on the loop.
extension StreamTask {
    package var stage: TaskStage {
        if self.machine.hasEnded { return .closed }
        guard self.transport != nil || self.securing != nil || self.machine.outlivesTransport else { return .opening }
        return self.machine.peerFinished || self.machine.writingIsOver ? .closing : .open
    }

    /// Whether bytes are passed on instead of queued for `read`.
    package var isRelayed: Bool {
        self.relay != nil
    }

    package var isInputClosed: Bool {
        self.machine.peerFinished || self.machine.readingIsOver
    }

    package var isOutputClosed: Bool {
        self.machine.writingIsOver
    }

    package var isSecure: Bool {
        self.transport is SecureTransport
    }

    /// Writes that wait here for their turn.
    package var waitingWrites: Int {
        self.queuesIfMade?.sends.operations.count ?? 0
    }

    /// Bytes for the peer that the transport was not given yet: of writes that wait here for their turn, and what a relay
    /// keeps.
    package var waitingBytes: Int {
        (self.queuesIfMade?.sends.waitingBytes ?? 0) + (self.relay?.unconsumedBytes ?? 0)
    }
}
