import GatewayConfiguration
import SessionTasks
import StreamTransport

/// A listening socket that the service manager opened for us.
package struct ActivatedSocket: Sendable, Hashable {
    /// From its `FileDescriptorName=`; empty where none was given.
    package let name: String
    package let descriptor: Descriptor

    package init(name: String, descriptor: Descriptor) {
        self.name = name
        self.descriptor = descriptor
    }
}

extension AdoptedSocket {
    func find(in sockets: [ActivatedSocket]) -> Descriptor? {
        switch self {
        case .name(let name): sockets.first { $0.name == name }?.descriptor
        case .index(let index): sockets.indices.contains(index) ? sockets[index].descriptor : nil
        }
    }
}

extension ListenAddress {
    /// Whether every loop has a socket of its own on the address (`SO_REUSEPORT`), rather than all of them one.
    var opensOnEachLoop: Bool {
        switch self {
        case .tcp, .tcpAny: true
        case .unix, .adopted: false
        }
    }
}

extension SocketAddress {
    package init(_ address: IPAddress, port: UInt16) {
        switch address {
        case .v4(let bits): self = .ipv4(address: bits, port: port)
        case .v6(let high, let low): self = .ipv6(high: high, low: low, scope: 0, port: port)
        }
    }

    /// The address without its port; `nil` for a Unix socket.
    package var ipAddress: IPAddress? {
        switch self {
        case .ipv4(let bits, _): .v4(bits)
        case .ipv6(let high, let low, _, _): .v6(high: high, low: low)
        case .unix: nil
        }
    }
}

extension EndpointURL {
    package var connectTarget: ConnectTarget { self.location.connectTarget }
}

extension EndpointURL.Location {
    var connectTarget: ConnectTarget {
        switch self {
        case .name(let name, let port): .host(name, port: port)
        case .address(let address, let port): .address(SocketAddress(address, port: port))
        case .unix(let path): .address(.unix(path: path))
        }
    }
}

extension KeepAliveSettings {
    /// The socket options that these settings ask for.
    var socketOptions: SocketOptions {
        var options = SocketOptions()
        options.keepAliveIdle = self.idle
        options.keepAliveInterval = self.interval
        options.keepAliveProbes = Int32(clamping: self.probes)
        options.userTimeout = self.userTimeout
        return options
    }
}

extension TargetRules {
    /// As `allows(_:askedFor:)`, where the host of a URL may be an address.
    package func allows(_ address: SocketAddress, onBehalfOf host: String) -> Bool {
        // Rules by host name do not apply to an IP literal.
        let isLiteral = SocketAddress(literal: host, port: 0) != nil
        return self.allows(address, askedFor: isLiteral ? nil : host)
    }

    /// Whether a connection to the address is allowed. Call it for each address that a name resolves to, before connecting.
    ///
    /// - Parameter host: the requested name in lower case; `nil` where an address was requested.
    package func allows(_ address: SocketAddress, askedFor host: String?) -> Bool {
        switch address {
        case .unix(let path): return self.rules.contains { $0.allows(socketPath: path) }
        case .ipv4, .ipv6:
            guard let ip = address.ipAddress, let port = address.port else { return false }
            return self.rules.contains { $0.allows(ip, port: port, requestedHost: host) }
        }
    }
}
