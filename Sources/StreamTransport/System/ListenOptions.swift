/// How a listening socket is opened.
package struct ListenOptions: Hashable, Sendable {
    /// Connections that may wait to be accepted; the kernel holds it to net.core.somaxconn.
    package var backlog: Int32 = 4096
    /// Several loops may each listen on the same TCP address, and the kernel shares connections out (`SO_REUSEPORT`).
    package var sharesPort = false
    /// Permission bits of a Unix socket's file.
    package var mode: UInt32 = 0o660
    /// An IPv6 socket takes IPv4 connections too; off, it takes only its own family.
    package var dualStack = false

    package init() {}
}
