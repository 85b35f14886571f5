/// The loops that watch one simulated socket: usually one.
final class Watchers {
    private var watches: [SimulatedWatch] = []

    func add(_ watch: SimulatedWatch) {
        self.watches.append(watch)
    }

    func remove(_ watch: SimulatedWatch) {
        self.watches.removeAll { $0 === watch }
    }

    /// The socket is closed: nobody hears of it again, as the kernel drops a closed descriptor from every epoll set.
    func removeAll() {
        for watch in self.watches { watch.end() }
        self.watches = []
    }

    /// Readiness may have changed.
    func notify() {
        for watch in self.watches { watch.enqueue() }
    }
}
