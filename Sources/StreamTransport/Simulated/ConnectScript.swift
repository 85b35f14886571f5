/// What a connection attempt to an address meets, before any listener is asked.
package enum ConnectScript: Hashable, Sendable {
    /// Takes this much longer than the network's latency, then goes on as usual.
    case delayed(Duration)
    /// A reset comes back, though somebody may be listening.
    case refused
    /// Nothing ever comes back; the kernel gives up after 127 s (`ETIMEDOUT`).
    case hangs
    /// A router says that there is no way (`EHOSTUNREACH`), after a round trip.
    case unreachable
    /// The kernel itself has no route (`ENETUNREACH`): `connect` fails at once.
    case noRoute
    /// The kernel has no local port left for it (`EADDRNOTAVAIL`): `connect` fails at once.
    case noLocalPort
}
