/// Whether connections of a listener may begin with a PROXY protocol header, version 1 or 2.
package struct ProxyProtocolAcceptance: Sendable, Equatable {
    package enum Mode: String, Sendable, Equatable, CaseIterable {
        /// Bytes that look like a header are ordinary bytes.
        case off
        /// A header from a trusted peer is believed; without one the peer itself is the client. From any other peer the
        /// bytes are ordinary bytes.
        case accept
        /// Every connection must begin with a header and come from a trusted peer; others are reset.
        case require
    }

    package var mode = Mode.off
    /// Peers whose header is believed.
    package var trusted: [AddressBlock] = AddressBlock.loopback

    package init() {}
}
