/// Where a connection is opened to and what is spoken there.
package struct EndpointURL: Sendable, Hashable {
    package enum Scheme: String, Sendable, Hashable, CaseIterable {
        case tcp, tls, unix, ws, wss

        package var speaksWebSocket: Bool { self == .ws || self == .wss }
        package var speaksTLS: Bool { self == .tls || self == .wss }
    }

    package enum Location: Sendable, Hashable {
        /// A name to be resolved, in lower case.
        case name(String, port: UInt16)
        case address(IPAddress, port: UInt16)
        /// A Unix socket's path, at most 107 bytes.
        case unix(path: String)
    }

    package var scheme: Scheme
    package var location: Location
    /// Path and query asked for at a WebSocket endpoint, from `/` on; `{name}` in it stands for a parameter of the
    /// route's path. Empty for streams.
    package var resource: ResourceTemplate

    package init(scheme: Scheme, location: Location, resource: ResourceTemplate = ResourceTemplate()) {
        self.scheme = scheme
        self.location = location
        self.resource = resource
    }

    /// The `Host` field's value: host and port, the port only where it is not the scheme's own; `localhost` for a Unix
    /// socket.
    package var authority: String {
        switch self.location {
        case .unix: "localhost"
        case .name(let name, let port): name + self.portSuffix(port)
        case .address(.v6(let high, let low), let port):
            "[\(IPAddress.v6(high: high, low: low))]" + self.portSuffix(port)
        case .address(let address, let port): "\(address)" + self.portSuffix(port)
        }
    }

    /// The name or address that TLS verifies, unless the settings say another; `nil` for a Unix socket.
    package var hostName: String? {
        switch self.location {
        case .unix: nil
        case .name(let name, _): name
        case .address(let address, _): "\(address)"
        }
    }

    private func portSuffix(_ port: UInt16) -> String {
        switch (self.scheme, port) {
        case (.ws, 80), (.wss, 443): ""
        default: ":\(port)"
        }
    }
}

extension EndpointURL: CustomStringConvertible {
    /// The URL again, in its normal form.
    package var description: String {
        switch (self.location, self.scheme) {
        case (.unix(let path), .unix): "unix://\(path)"
        case (.unix(let path), _) where self.scheme.speaksWebSocket: "\(self.scheme)+unix://\(path):\(self.resource)"
        case (.unix(let path), _): "\(self.scheme)+unix://\(path)"
        default: "\(self.scheme)://\(self.authority)\(self.resource)"
        }
    }
}
