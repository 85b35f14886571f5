/// A tunnel between two peers that somebody in charge wants opened.
package struct ClientTunnelOrder: Sendable {
    package let downstream: ClientOrder
    package let upstream: ClientOrder
    package let settings: TunnelSettings

    package init(downstream: ClientOrder, upstream: ClientOrder, settings: TunnelSettings) {
        self.downstream = downstream
        self.upstream = upstream
        self.settings = settings
    }

    subscript(side: TunnelSide) -> ClientOrder {
        switch side {
        case .downstream: self.downstream
        case .upstream: self.upstream
        }
    }
}
