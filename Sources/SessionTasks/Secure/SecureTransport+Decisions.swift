import StreamTransport
import TLSEngine

/// What the handshake asks the connection's owner: whether a certificate is good, and which to show.
extension SecureTransport {
    func askForDecision(_ request: VerificationRequest) {
        guard let decide = self.settings.decide else { return self.decided(.reject) }
        self.waitForAnswer()
        let loop = self.loop
        let reference = LoopBound(self)
        decide(request) { decision in
            loop.execute { reference.value.decided(decision) }
        }
    }

    private func decided(_ decision: VerificationDecision) {
        guard self.phase == .handshaking else { return }
        self.connection.resolveVerification(decision)
        self.goOnAnswered()
    }

    /// A peer must not fill our memory while somebody thinks, nor be blamed for the time that takes.
    private func waitForAnswer() {
        self.awaitsAnswer = true
        self.loop.disarm(self.timer)
        self.lower.pauseReading()
    }

    private func goOnAnswered() {
        if self.awaitsAnswer {
            self.lower.resumeReading()
            self.loop.arm(self.timer, after: self.settings.timeout, target: self)
        }
        self.awaitsAnswer = false
        self.workLater()
    }

    func askForIdentity(_ issuers: [[UInt8]]) {
        guard let choose = self.settings.chooseIdentity else { return self.chose(nil) }
        self.waitForAnswer()
        let loop = self.loop
        let reference = LoopBound(self)
        choose(issuers) { identity in
            loop.execute { reference.value.chose(identity) }
        }
    }

    private func chose(_ identity: TLSIdentity?) {
        guard self.phase == .handshaking else { return }
        self.connection.provideClientCertificate(identity)
        self.goOnAnswered()
    }
}
