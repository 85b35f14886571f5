/// Why a connection was not admitted. The raw value names it in logs and in the counter.
package enum AdmissionRefusal: String, CaseIterable, Sendable {
    /// The gateway carries as many connections as it may.
    case totalLimit = "total-limit"
    /// The listener does.
    case listenerLimit = "listener-limit"
    /// The client's address (or IPv6 /64) does.
    case clientLimit = "client-limit"
    /// Too many different clients to count: the table is full.
    case clientTableFull = "client-table-full"
    /// Accepting faster than the bucket of tokens fills.
    case acceptRate = "accept-rate"
    /// The gateway is shutting down.
    case draining

    /// The answer to an opening handshake (RFC 6585 §4 for 429). Connections without one are reset.
    package var status: UInt16 {
        switch self {
        case .clientLimit: 429
        case .totalLimit, .listenerLimit, .clientTableFull, .acceptRate, .draining: 503
        }
    }
}
