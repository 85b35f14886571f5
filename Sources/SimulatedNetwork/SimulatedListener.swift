import DequeModule
import StreamTransport

/// A listening socket of the simulated network with the connections that wait to be accepted.
final class SimulatedListener {
    let number: Int
    let address: SocketAddress
    let options: ListenOptions
    /// Options applied to the listener; accepted connections inherit them, as on Linux. `nil`: none.
    var inherited: SocketOptions?
    let watchers = Watchers()
    unowned let network: SimulatedNetwork
    private var queue: Deque<SimulatedStream> = []
    /// Handshakes in progress that have a place in the queue.
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

    /// Connections that were not accepted are reset, as on Linux.
    func close() {
        self.isClosed = true
        self.network.listeners.remove(self)
        while let stream = self.queue.popFirst() { stream.reset() }
        self.network.note(.closed, self.number, 0)
    }
}

/// Listeners of the simulated network by address.
struct ListenerTable {
    /// A Unix socket's file stays when its listener is closed, and then refuses.
    private struct BoundFile {
        let number: Int
        var listener: SimulatedListener?
        var mode: UInt32
    }

    private var byPort: [UInt16: [SimulatedListener]] = [:]
    private var files: [String: BoundFile] = [:]

    /// - Throws: `EADDRINUSE`. A socket file without a listener is replaced.
    mutating func add(_ listener: SimulatedListener) throws(SystemError) {
        switch listener.address {
        case .unix(let path):
            guard self.files[path]?.listener == nil else { throw .addressInUse }
            self.files[path] = BoundFile(
                number: listener.number, listener: listener, mode: listener.options.mode)
        case .ipv4(_, let port), .ipv6(_, _, _, let port):
            let others = self.byPort[port, default: []]
            guard !others.contains(where: { $0.conflicts(with: listener) }) else { throw .addressInUse }
            self.byPort[port] = others + [listener]
        }
    }

    mutating func remove(_ listener: SimulatedListener) {
        switch listener.address {
        case .unix(let path):
            // The file may be another's by now.
            guard self.files[path]?.listener === listener else { return }
            self.files[path]?.listener = nil
            if path.hasPrefix("@") { self.files[path] = nil }
        case .ipv4(_, let port), .ipv6(_, _, _, let port): self.byPort[port]?.removeAll { $0 === listener }
        }
    }

    /// Listeners that take TCP connections to `address`: those on exactly it, else those on every address.
    func listeners(for address: SocketAddress) -> [SimulatedListener] {
        guard let port = address.port, let candidates = self.byPort[port] else { return [] }
        let exact = candidates.filter { $0.address == address }
        return exact.isEmpty ? candidates.filter { $0.covers(address) } : exact
    }

    func isFree(_ port: UInt16) -> Bool {
        self.byPort[port, default: []].isEmpty
    }

    /// - Throws: `ENOENT` without a file, `EACCES` without write permission, `ECONNREFUSED` without a listener.
    func unixListener(_ path: String) throws(SystemError) -> SimulatedListener {
        guard let file = self.files[path] else { throw path.hasPrefix("@") ? .refused : .noSuchFile }
        guard file.mode & 0o200 != 0 else { throw .accessDenied }
        guard let listener = file.listener else { throw .refused }
        return listener
    }

    func file(at path: String) -> SocketFile? {
        guard !path.hasPrefix("@"), let file = self.files[path] else { return nil }
        return SocketFile(path: path, device: 0, inode: UInt64(file.number))
    }

    /// Removes a socket file; its listener is no longer reachable by path.
    mutating func remove(_ file: SocketFile) {
        guard self.file(at: file.path) == file else { return }
        self.files[file.path] = nil
    }

    mutating func setMode(_ mode: UInt32, ofFileAt path: String) {
        self.files[path]?.mode = mode
    }

    /// Permission bits of a Unix socket's file; `nil` without one.
    func mode(ofFileAt path: String) -> UInt32? {
        self.files[path]?.mode
    }
}

extension SimulatedListener {
    fileprivate var isWildcard: Bool {
        switch self.address {
        case .ipv4(0, _), .ipv6(0, 0, _, _): true
        default: false
        }
    }

    fileprivate func covers(_ target: SocketAddress) -> Bool {
        switch (self.address, target) {
        case (.ipv4(0, _), .ipv4), (.ipv6(0, 0, _, _), .ipv6): true
        case (.ipv6(0, 0, _, _), .ipv4): self.options.dualStack
        default: false
        }
    }

    fileprivate func conflicts(with other: SimulatedListener) -> Bool {
        guard self.options.portSharing == .none || other.options.portSharing != .join else { return false }
        return self.address == other.address || self.covers(other.address) || other.covers(self.address)
    }
}
