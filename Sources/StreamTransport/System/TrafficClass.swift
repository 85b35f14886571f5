import CLinux

/// What the packets of a connection carry in their heads for routers that treat some better than others: the
/// differentiated services code point, six bits (RFC 2474 §3).
///
/// The raw value is the code point; which is for what is RFC 4594 §2.3.
package enum TrafficClass: UInt8, CaseIterable, Hashable, Sendable {
    /// As all traffic that says nothing.
    case standard = 0
    /// CS1: may be slower than all other.
    case lowPriority = 8
    /// AF21: somebody waits for the answer.
    case lowLatency = 18
    /// AF31: sound and pictures with a buffer before them.
    case streaming = 26
    /// CS4: games, and what else answers at once.
    case interactive = 32
    /// AF41: people who see each other.
    case conferencing = 34
    /// CS5: about calls, and not the calls themselves.
    case signaling = 40
    /// EF: people who hear each other.
    case telephony = 46

    /// The socket option that marks a connection with `peer`; `nil` for one over a Unix socket.
    ///
    /// The two bits beside the code point are the system's, which keeps its own there for TCP (RFC 3168 §5).
    package func socketOption(toward peer: SocketAddress) -> (level: Int32, name: Int32, value: Int32)? {
        let value = Int32(self.rawValue) << 2
        return switch peer {
        case .ipv4: (Int32(IPPROTO_IP), IP_TOS, value)
        case .ipv6: (Int32(IPPROTO_IPV6), IPV6_TCLASS, value)
        case .unix: nil
        }
    }
}
