/// How a listening socket is opened.
package struct ListenOptions: Hashable, Sendable {
    /// Connections that may wait to be accepted; the kernel holds it to net.core.somaxconn.
    package var backlog: Int32 = 4096
    /// Whether several sockets may listen on the same TCP address, so that the kernel shares connections out.
    package enum PortSharing: Hashable, Sendable {
        /// No other socket.
        case none
        /// The first of several: fails where any other socket listens, and lets those of `join` in afterwards.
        case begin
        /// Another one beside those that share already (`SO_REUSEPORT`).
        case join
    }

    package var portSharing = PortSharing.none
    /// Permission bits of a Unix socket's file.
    package var mode: UInt32 = 0o660
    /// An IPv6 socket takes IPv4 connections too; off, it takes only its own family.
    package var dualStack = false

    package init() {}
}
