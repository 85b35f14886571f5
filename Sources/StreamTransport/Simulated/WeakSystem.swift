/// A loop that may be gone.
struct WeakSystem {
    weak var system: SimulatedSystem?
}
