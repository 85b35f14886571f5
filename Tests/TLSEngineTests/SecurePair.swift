import TLSEngine

/// A client and a server; the test carries the ciphertext between them.
final class SecurePair {
    /// One side with all its events.
    final class Side {
        let connection: SecureConnection
        /// The undelivered ciphertext for this side.
        var inbox: [UInt8] = []
        var events: [SecureEvent] = []
        var received: [UInt8] = []

        init(_ connection: SecureConnection) {
            self.connection = connection
        }

        var metadata: TLSMetadata? {
            for case .handshakeCompleted(let metadata) in self.events { return metadata }
            return nil
        }

        var failure: TLSFailure? {
            for case .failed(let failure) in self.events { return failure }
            return nil
        }

        var request: VerificationRequest? {
            for case .verificationRequested(let request) in self.events { return request }
            return nil
        }

        var inputClosed: Bool { self.events.contains(.inputClosed) }

        /// Pulls until no bytes come, and checks that all ciphertext was then consumed.
        func deliver(_ bytes: [UInt8], room: Int = 4096) -> Bool {
            var position = 0
            var plaintext = [UInt8](repeating: 0, count: room)
            while true {
                var span = plaintext.mutableSpan
                var target = span.mutableBytes
                guard let event = self.connection.nextEvent(bytes.span.bytes, at: &position, plaintext: &target) else {
                    return position == bytes.count
                }
                self.events.append(event)
                if case .plaintext(let count) = event { self.received.append(contentsOf: plaintext[..<count]) }
            }
        }

        func takeOutput() -> [UInt8] {
            self.connection.withCiphertext { bytes in
                bytes.withUnsafeBytes { Array($0) }
            }
        }

        func write(_ bytes: [UInt8]) throws {
            try self.connection.write(bytes.span.bytes)
        }
    }

    let client: Side
    private(set) var server: Side
    /// Whether each `nil` came after all bytes were consumed.
    private(set) var keptPromise = true

    /// - Parameter starts: whether the client sends its first message.
    init(
        client: TLSContext, server: TLSContext, name: String? = "server.test", key: String? = nil, starts: Bool = true
    ) throws {
        self.client = Side(try SecureConnection(client, serverName: name, resumptionKey: key))
        self.server = Side(try SecureConnection(server))
        if starts { self.client.connection.start() }
    }

    /// Another server gets what the client sends.
    func replaceServer(_ connection: SecureConnection) { self.server = Side(connection) }

    convenience init(_ client: TLSConfiguration, _ server: TLSConfiguration, name: String? = "server.test") throws {
        try self.init(client: TLSContext(client), server: TLSContext(server), name: name)
    }

    /// Carries bytes both ways until none are left.
    /// - Parameter chunk: the most bytes delivered at once.
    func run(chunk: Int = .max) {
        while true {
            self.client.inbox += self.server.takeOutput()
            self.server.inbox += self.client.takeOutput()
            let moved = self.carry(to: self.client, chunk) || self.carry(to: self.server, chunk)
            guard moved || self.client.connection.pendingCiphertext + self.server.connection.pendingCiphertext > 0
            else {
                return
            }
        }
    }

    /// Calls both sides without new bytes, as after a decision.
    func nudge() {
        for side in [self.client, self.server] where !side.deliver([]) { self.keptPromise = false }
        self.run()
    }

    private func carry(to side: Side, _ chunk: Int) -> Bool {
        guard !side.inbox.isEmpty else { return false }
        let bytes = Array(side.inbox.prefix(chunk))
        side.inbox.removeFirst(bytes.count)
        if !side.deliver(bytes) { self.keptPromise = false }
        return true
    }
}
