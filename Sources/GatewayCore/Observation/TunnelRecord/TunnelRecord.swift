import StreamTransport

/// One connection as its two log lines tell of it, at open and at close.
package struct TunnelRecord: Hashable, Sendable {
    /// Unique in the process; the same in both lines.
    package var identifier: UInt64
    package var listener: String
    /// `nil` where none was found.
    package var route: String?
    /// Who connected, by a trusted PROXY header if there was one.
    package var client: SocketAddress
    /// The other end of the accepted connection; written where it is not the client.
    package var peer: SocketAddress
    /// The endpoint it leads to; `nil` where none was reached.
    package var upstream: String?

    package init(
        identifier: UInt64, listener: String, route: String? = nil, client: SocketAddress, peer: SocketAddress,
        upstream: String? = nil
    ) {
        self.identifier = identifier
        self.listener = listener
        self.route = route
        self.client = client
        self.peer = peer
        self.upstream = upstream
    }

    /// `tunnel opened`.
    package var openLine: LogLine {
        var line = LogLine("tunnel opened")
        self.add(to: &line)
        return line
    }

    /// `tunnel closed`, with what it carried and its one reason.
    /// - Parameter duration: since it was accepted.
    package func closeLine(
        towardUpstream: TunnelTraffic, towardDownstream: TunnelTraffic, duration: Duration, reason: TerminationReason
    ) -> LogLine {
        var line = LogLine("tunnel closed")
        self.add(to: &line)
        line.add("duration", duration)
        line.add("bytes_toward_upstream", towardUpstream.bytes)
        line.add("bytes_toward_downstream", towardDownstream.bytes)
        line.add("messages_toward_upstream", towardUpstream.messages)
        line.add("messages_toward_downstream", towardDownstream.messages)
        line.add("reason", reason.name)
        if let code = reason.cause.code { line.add("code", UInt64(code)) }
        return line
    }

    private func add(to line: inout LogLine) {
        line.add("id", self.identifier)
        line.add("listener", self.listener)
        line.add("route", self.route)
        line.add("client", Self.text(self.client))
        if self.peer != self.client { line.add("peer", Self.text(self.peer)) }
        line.add("upstream", self.upstream)
    }

    /// `192.0.2.7:4711`, `[2001:db8::1]:4711`, `unix:/run/app.sock`.
    private static func text(_ address: SocketAddress) -> String {
        switch address {
        case .ipv4(let bits, let port): "\(IPAddress.v4(bits)):\(port)"
        case .ipv6(let high, let low, _, let port): "[\(IPAddress.v6(high: high, low: low))]:\(port)"
        case .unix(let path): "unix:\(path)"
        }
    }
}
