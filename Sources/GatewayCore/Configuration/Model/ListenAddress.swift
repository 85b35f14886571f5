/// Where a listener takes its connections from.
package enum ListenAddress: Sendable, Hashable {
    /// Port 0 lets the system pick a free one, which is then printed and logged.
    case tcp(IPAddress, port: UInt16)
    /// All addresses of both families on one port, written `*`.
    case tcpAny(port: UInt16)
    /// A socket file of at most 107 bytes of path, made with the permission bits `mode`.
    case unix(path: String, mode: UInt32)
    /// A socket that the service supervisor opened and handed over (`LISTEN_FDS`).
    case adopted(AdoptedSocket)
}

extension ListenAddress: CustomStringConvertible {
    package var description: String {
        switch self {
        case .tcp(.v6(let high, let low), let port): "[\(IPAddress.v6(high: high, low: low))]:\(port)"
        case .tcp(let address, let port): "\(address):\(port)"
        case .tcpAny(let port): "*:\(port)"
        case .unix(let path, _): path
        case .adopted(let socket): "systemd:\(socket)"
        }
    }
}
