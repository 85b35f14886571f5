/// What counts as one client: an IPv4 address, or an IPv6 /64, which is what one customer is given (RFC 6177 §2).
struct ClientKey: Hashable, Sendable {
    private let isIPv4: Bool
    private let bits: UInt64

    init(_ address: IPAddress) {
        switch address.unmapped {
        case .v4(let bits):
            self.isIPv4 = true
            self.bits = UInt64(bits)
        case .v6(let high, _):
            self.isIPv4 = false
            self.bits = high
        }
    }
}
