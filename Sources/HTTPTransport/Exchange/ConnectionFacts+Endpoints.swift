import StreamTransport

extension ConnectionFacts {
    /// Our address in digits, and our port.
    package var localHost: String? { self.localAddress?.host }
    package var localPort: Int? { self.localAddress?.port.map(Int.init) }

    /// The peer's address in digits, and its port.
    package var peerHost: String? { self.peerAddress?.host }
    package var peerPort: Int? { self.peerAddress?.port.map(Int.init) }
}
