import GatewayConfiguration

/// Phase of an accepted connection until it reaches its endpoint or tunnel.
package enum InboundPhase: Hashable, Sendable {
    /// The client's address is not known: a PROXY header may follow.
    case arriving
    /// Plain or TLS, by the first byte.
    case detectingTLS(AdmissionRefusal?)
    /// In the queue for a TLS handshake, or in it.
    case securing(AdmissionRefusal?)
    /// Reading the opening request. A client that was refused gets its status as the response.
    case request(isSecure: Bool, AdmissionRefusal?)
    /// The transport has another owner.
    case handedOver
    case ended

    package enum Step: Hashable, Sendable {
        /// Wait for the first byte.
        case detectTLS
        /// Enter the queue for a TLS handshake.
        case beginTLS
        case readRequest
        /// Reset the client: its address is denied, which saves the TLS handshake.
        case reset
        /// The listener has no requests: hand the transport to its route.
        case handOver
        case ignore
    }

    /// The peer is the client, or its PROXY header was read.
    /// - Parameter refusal: why admission refused the client; only where requests are answered.
    package mutating func clientAddressKnown(
        _ kind: ListenerKind, acceptsPlain: Bool, refusal: AdmissionRefusal?
    ) -> Step {
        switch self {
        case .arriving:
            guard kind.speaksTLS else { return self.continuePlain(kind, isSecure: false, refusal) }
            guard acceptsPlain else { return self.beginTLS(refusal) }
            self = .detectingTLS(refusal)
            return .detectTLS
        case .detectingTLS, .securing, .request, .handedOver, .ended:
            return .ignore
        }
    }

    package mutating func firstByteReceived(_ byte: UInt8, _ kind: ListenerKind) -> Step {
        switch self {
        case .detectingTLS(let refusal):
            // A TLS record of a handshake begins with 22 (RFC 8446 §5.1); no HTTP method, and no sensible stream
            // protocol, does.
            guard byte == 22 else { return self.continuePlain(kind, isSecure: false, refusal) }
            return self.beginTLS(refusal)
        case .arriving, .securing, .request, .handedOver, .ended:
            return .ignore
        }
    }

    private mutating func beginTLS(_ refusal: AdmissionRefusal?) -> Step {
        guard refusal != .clientAddress else { return .reset }
        self = .securing(refusal)
        return .beginTLS
    }

    /// The TLS handshake is complete.
    package mutating func secured(_ kind: ListenerKind) -> Step {
        switch self {
        case .securing(let refusal): self.continuePlain(kind, isSecure: true, refusal)
        case .arriving, .detectingTLS, .request, .handedOver, .ended: .ignore
        }
    }

    /// Continues with the plaintext, inside TLS or without.
    private mutating func continuePlain(_ kind: ListenerKind, isSecure: Bool, _ refusal: AdmissionRefusal?) -> Step {
        self = kind.speaksWebSocket ? .request(isSecure: isSecure, refusal) : .handedOver
        return kind.speaksWebSocket ? .readRequest : .handOver
    }

    package enum RequestReceivedAction: Hashable, Sendable {
        case findRoute(isSecure: Bool)
        case refuse(AdmissionRefusal)
        case ignore
    }

    /// The opening request is complete.
    package func requestReceived() -> RequestReceivedAction {
        switch self {
        case .request(let isSecure, let refusal): refusal.map { .refuse($0) } ?? .findRoute(isSecure: isSecure)
        case .arriving, .detectingTLS, .securing, .handedOver, .ended: .ignore
        }
    }

    /// The request has a route.
    package mutating func routeFound() {
        if case .request = self { self = .handedOver }
    }

    package enum TimedOutAction: Hashable, Sendable {
        /// Answer 408.
        case refuse
        case reset
        case ignore
    }

    /// The deadline of all steps has passed.
    package func timedOut() -> TimedOutAction {
        switch self {
        case .request: .refuse
        case .arriving, .detectingTLS, .securing: .reset
        case .handedOver, .ended: .ignore
        }
    }

    package enum EndedAction: Hashable, Sendable {
        case end
        /// End, and leave the queue of TLS handshakes.
        case endHandshake
        case ignore
    }

    package mutating func ended() -> EndedAction {
        switch self {
        case .arriving, .detectingTLS, .request:
            self = .ended
            return .end
        case .securing:
            self = .ended
            return .endHandshake
        case .handedOver, .ended:
            return .ignore
        }
    }

    /// As logged when the connection ends in this phase.
    package var terminationPhase: TerminationPhase {
        switch self {
        case .arriving: .proxyProtocol
        case .detectingTLS, .securing: .tls
        case .request, .handedOver, .ended: .openingHandshake
        }
    }
}
