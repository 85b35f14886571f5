import StreamTransport

/// What the control plane shows of a task beside its record, on the loop.
extension StreamTask {
    package var stage: TaskStage {
        if self.ended { return .closed }
        guard self.transport != nil || self.securing != nil else { return .opening }
        return self.inputWasClosed || self.writingIsOver ? .closing : .open
    }

    /// Whether bytes are passed on instead of queued for `read`.
    package var isRelayed: Bool {
        self.relay != nil
    }

    package var isInputClosed: Bool {
        self.inputWasClosed || self.readingIsOver
    }

    package var isOutputClosed: Bool {
        self.writingIsOver
    }

    package var isSecure: Bool {
        self.transport is SecureTransport
    }

    /// Bytes of writes that the transport was not given yet.
    package var waitingBytes: Int {
        self.queuesIfMade?.sends.waitingBytes ?? 0
    }
}
