import ByteKernels
import StreamTransport
import Synchronization
import WebSocketProtocol

/// The client's opening handshake, on the loop (RFC 6455 §4.1).
extension WebSocketTask {
    /// Bytes of a refusal's body that are kept.
    static let responseBodyLimit = 16 << 10

    package func resumeOnLoop() {
        guard self.phase == .opening, let client = self.client, client.connecting == nil, self.transport == nil else {
            return
        }
        self.record.state = .running
        client.connecting = TransportOpening(client.opening.target, of: self.record, on: self.loop) { result in
            client.connecting = nil
            switch result {
            case .success(let transport): self.ask(on: transport, client)
            case .failure(let failure):
                self.failure = TaskFailure(failure)
                self.finish()
            }
        }
    }

    private func ask(on transport: any Transport, _ client: OpeningState) {
        self.adopt(transport)
        client.nonce = self.loop.system.randomWords(2).flatMap { word in
            (0..<8).map { UInt8(truncatingIfNeeded: word >> UInt64(8 * $0)) }
        }
        client.opening.handshake.rendered(nonce: client.nonce).withRawSpan { transport.write($0) }
        self.loop.arm(self.timer, after: self.options.handshakeTimeout, target: self)
        transport.resumeReading()
    }

    func responseReceived(_ bytes: inout MutableRawSpan) -> Int {
        guard let client = self.client, var parser = client.parser else { return self.collectBody(bytes.bytes) }
        var used = 0
        do throws(HeadViolation) {
            while let head = try parser.parse(bytes.bytes, consumed: &used) {
                guard head.isInterim else {
                    client.parser = nil
                    self.answered(head)
                    break
                }
            }
        } catch {
            self.endOpening(.protocolViolation(closeCode: 1002, error.explanation))
            return bytes.byteCount
        }
        if client.parser != nil { client.parser = parser }
        if self.phase == .opening, used < bytes.byteCount, client.parser == nil {
            return used + self.collectBody(bytes.bytes.extracting(used..<bytes.byteCount))
        }
        guard self.phase == .open, used < bytes.byteCount else { return used }
        // Frames that came with the response; a relay that is not ready yet gets them when it resumes.
        var rest = bytes._mutatingExtracting(used..<bytes.byteCount)
        return used + self.pull(&rest)
    }

    private func answered(_ head: ResponseHead) {
        self.publish { $0.response = head }
        guard let client = self.client else { return }
        switch client.opening.handshake.check(head, nonce: client.nonce) {
        case .success(let agreement):
            self.client = nil
            self.publish { $0.subprotocol = agreement.subprotocol }
            let policy = client.opening.deflate ?? DeflatePolicy()
            self.opened(agreement.deflate.map { NegotiatedDeflate($0, policy: policy) })
        case .failure(.refused(let refusal)):
            self.failure = .handshakeRefused(status: refusal.status)
            // The body says why; as much of it as fits is kept until the server is done or the deadline comes.
            if refusal.fields["Content-Length"] == "0" { self.endOpening(.handshakeRefused(status: refusal.status)) }
        case .failure(.invalid(_, let violation)):
            self.endOpening(.protocolViolation(closeCode: 1002, violation.explanation))
        }
    }

    private func collectBody(_ bytes: RawSpan) -> Int {
        let (body, announced) = self.published { published in
            (published.responseBody, published.response?.fields["Content-Length"].flatMap { Int($0) } ?? .max)
        }
        let room = Self.responseBodyLimit - body.count
        self.publish { $0.responseBody.append(bytes.extracting(0..<min(room, bytes.byteCount))) }
        let isFull = body.count + bytes.byteCount >= min(announced, Self.responseBodyLimit)
        if isFull { self.endOpening(self.failure ?? .ended) }
        return bytes.byteCount
    }

    func endOpening(_ failure: TaskFailure) {
        self.failure = self.failure ?? failure
        self.transport?.close(linger: .seconds(1))
        self.finish()
    }

    func openingCutShort() {
        self.endOpening(.connectionLost("the server ended the connection during the opening handshake"))
    }

    func openingTimedOut() {
        self.failure = self.failure ?? .timedOut
        self.transport?.reset()
        self.finish()
    }
}
