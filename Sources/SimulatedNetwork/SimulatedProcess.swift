import HeapModule
import StreamTransport

/// A process on the simulated network: what its loops share, which is the table of descriptors and the address it
/// connects from.
package final class SimulatedProcess {
    /// Most descriptors open at once; one more is `EMFILE`.
    package var descriptorLimit = 65_536
    /// Where its connections to others than loopback come from.
    package let address: UInt32
    package let network: SimulatedNetwork
    private var sockets: [Int32: OpenSocket] = [:]
    /// Numbers given back, all below `unused`.
    private var free = Heap<Int32>()
    /// After the three standard streams, and as many again for a loop's own descriptors.
    private var unused: Int32 = 6
    private var exhaustedUntil = MonotonicInstant(nanoseconds: 0)
    private var isKilled = false

    init(on network: SimulatedNetwork, address: UInt32) {
        self.network = network
        self.address = address
    }

    deinit {
        for (_, socket) in self.sockets {
            if case .stream(let stream) = socket { stream.sever() }
        }
        self.network.openDescriptors -= self.sockets.count
    }

    package var openDescriptors: Int {
        self.sockets.count
    }

    /// Another loop of this process.
    package func makeSystem() -> SimulatedSystem {
        self.network.makeSystem(in: self)
    }

    /// Ends the process at once, as `SIGKILL` does: its loops take no more turns, and its connections are closed. Calls of
    /// objects that outlive it do nothing.
    package func kill() {
        self.isKilled = true
        self.network.stopLoops(of: self)
        for number in self.sockets.keys.sorted() { self.release(Descriptor(number), "kill")?.close() }
    }

    /// Every request for a descriptor fails with `EMFILE` for `duration` from now on.
    package func exhaustDescriptors(for duration: Duration) {
        self.exhaustedUntil = self.network.now.advanced(by: duration)
    }

    /// Why no descriptor can be opened now (`EMFILE`, `ENFILE`); `nil` if one can.
    func descriptorRefusal() -> SystemError? {
        if self.network.chance.happens(self.network.faults.exhaustion) {
            self.exhaustDescriptors(for: self.network.chance.duration(in: self.network.faults.exhaustionDuration))
        }
        if self.sockets.count >= self.descriptorLimit || self.network.now < self.exhaustedUntil {
            self.network.note(.exhausted, 0, self.sockets.count)
            return .processDescriptorsExhausted
        }
        guard self.network.openDescriptors < self.network.descriptorLimit else {
            self.network.note(.exhausted, 0, self.network.openDescriptors)
            return .systemDescriptorsExhausted
        }
        return nil
    }

    /// The lowest free number, as open(2) promises.
    func open(_ socket: OpenSocket) -> Descriptor {
        let number: Int32
        if let lowest = self.free.popMin() {
            number = lowest
        } else {
            number = self.unused
            self.unused += 1
        }
        self.sockets[number] = socket
        self.network.openDescriptors += 1
        return Descriptor(number)
    }

    /// `nil` for a descriptor that is not open: a mistake of the program, which is noted.
    func socket(_ descriptor: Descriptor, _ call: StaticString) -> OpenSocket? {
        guard let socket = self.sockets[descriptor.number] else {
            guard !self.isKilled else { return nil }
            self.network.misuse("\(call) on descriptor \(descriptor.number), which is not open")
            return nil
        }
        return socket
    }

    func stream(_ descriptor: Descriptor, _ call: StaticString) -> SimulatedStream? {
        switch self.socket(descriptor, call) {
        case .stream(let stream): return stream
        case .listener:
            self.network.misuse("\(call) on descriptor \(descriptor.number), which listens")
            return nil
        case nil: return nil
        }
    }

    /// Takes the descriptor out of the table; its socket is then to be closed.
    func release(_ descriptor: Descriptor, _ call: StaticString) -> OpenSocket? {
        guard let socket = self.socket(descriptor, call) else { return nil }
        self.sockets[descriptor.number] = nil
        self.network.openDescriptors -= 1
        self.free.insert(descriptor.number)
        socket.watchers.removeAll()
        return socket
    }
}
