import StreamTransport
import WebSocketProtocol

/// A task that rests, on the loop.
extension WebSocketTask {
    /// Until the task is resumed nothing is read, messages and pings of its user wait in its queue, no keep-alive Ping is
    /// sent, and no timer runs; frames of a relay are still sent. Not counted. An opening handshake that is under way begins
    /// anew then. A task that is closing does not rest.
    package func suspendOnLoop() {
        guard !self.suspended, self.phase == .opening || self.phase == .open else { return }
        // A refusal whose body is still on its way is an end.
        if self.phase == .opening, let failure = self.failure { return self.endOpening(failure) }
        self.suspended = true
        self.record.state = .suspended
        self.loop.disarm(self.timer)
        if self.phase == .open {
            self.transport?.pauseReading()
        } else if let client = self.client, !client.isJudged {
            client.connecting?.cancel()
            self.client = OpeningState(client.opening)
            self.leaveTransport()
        }
    }

    func endSuspension() {
        guard self.suspended else { return }
        self.suspended = false
        self.record.state = .running
        guard self.phase == .open else { return }
        if self.holdsEnd {
            self.waitForReceivers()
        } else if var state = self.keepAlive {
            // The peer was not heard because nobody listened.
            state.heard()
            self.keepAlive = state
            self.loop.arm(self.timer, at: state.deadline(timeout: self.options.pongTimeout), target: self)
        }
        self.updateReading()
        self.sendWaiting()
    }
}
