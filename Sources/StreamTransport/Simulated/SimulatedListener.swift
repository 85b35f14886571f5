import DequeModule

/// A listening socket of the simulated network with the connections that wait to be accepted.
final class SimulatedListener {
    let number: Int
    let address: SocketAddress
    let options: ListenOptions
    /// What was applied to the listener; connections that it takes inherit it, as Linux does it. `nil`: nothing was.
    var inherited: SocketOptions?
    let watchers = Watchers()
    unowned let network: SimulatedNetwork
    private var queue: Deque<SimulatedStream> = []
    /// Handshakes under way that have a place in the queue.
    private var promised = 0
    private(set) var isClosed = false

    init(_ address: SocketAddress, options: ListenOptions, on network: SimulatedNetwork) {
        self.number = network.nextNumber()
        self.address = address
        self.options = options
        self.network = network
    }

    var readiness: Interest {
        self.queue.isEmpty ? [] : .readable
    }

    /// Linux lets one more wait than the backlog says.
    var isFull: Bool {
        self.queue.count + self.promised > max(0, Int(self.options.backlog))
    }

    func promise() {
        self.promised += 1
    }

    func withdrawPromise() {
        self.promised -= 1
    }

    func enqueue(_ stream: SimulatedStream) {
        self.queue.append(stream)
        self.watchers.notify()
    }

    func dequeue() -> SimulatedStream? {
        self.queue.popFirst()
    }

    var isEmpty: Bool {
        self.queue.isEmpty
    }

    /// Whoever was not accepted yet is reset, as Linux does.
    func close() {
        self.isClosed = true
        self.network.listeners.remove(self)
        while let stream = self.queue.popFirst() { stream.reset() }
        self.network.note(.closed, self.number, 0)
    }
}
