import StreamTransport
import Synchronization

extension Gateway {
    /// Whether one of `listeners`, which are open, takes connections at `address`.
    func isHeld(_ address: ListenAddress, by listeners: [ListenerPlan]) -> Bool {
        let places = self.state.withLock { $0.places }
        return listeners.map(\.configuration).contains { listener in
            places[listener.name].map { address.overlaps(listener.address.picked($0.port ?? 0)) } ?? false
        }
    }

    /// Refuses the address of a new listener where one that stays has the very port, which the system picked for it:
    /// the kernel would let both listen, and share the connections out between them.
    func refuseTaken(_ listener: ListenerConfiguration, by kept: [ListenerPlan]) throws(PlanFault) {
        let places = self.state.withLock { $0.places }
        for other in kept.map(\.configuration) {
            guard let port = places[other.name]?.port, listener.address.overlaps(other.address.picked(port)) else {
                continue
            }
            throw PlanFault(
                "listener '\(listener.name)' at \(listener.address): the address is in use by listener '\(other.name)'")
        }
    }
}
