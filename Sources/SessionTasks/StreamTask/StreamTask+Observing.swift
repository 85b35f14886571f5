import StreamTransport

/// What the control plane shows of a task beside its record, on the loop.
extension StreamTask {
    package var stage: TaskStage {
        if self.ended { return .closed }
        guard self.transport != nil || self.securing != nil || self.outlivesTransport else { return .opening }
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

    /// Writes that wait here for their turn.
    package var waitingWrites: Int {
        self.queuesIfMade?.sends.operations.count ?? 0
    }

    /// Bytes for the peer that the transport was not given yet: of writes that wait here for their turn, and what a relay
    /// keeps.
    package var waitingBytes: Int {
        (self.queuesIfMade?.sends.waitingBytes ?? 0) + (self.relay?.heldBytes ?? 0)
    }
}
