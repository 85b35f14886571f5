/// Where to connect to.
package enum ConnectTarget: Hashable, Sendable {
    /// A name to look up, or an address in digits.
    case host(String, port: UInt16)
    case address(SocketAddress)
}
