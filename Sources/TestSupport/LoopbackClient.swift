import StreamTransport

/// A blocking client on real sockets, for tests of programs that run on their own threads. All calls share one
/// deadline.
package final class LoopbackClient {
    package static let address = SocketAddress.ipv4(address: 0x7f00_0001, port: 0)

    package enum Failure: Error, Equatable {
        case deadlinePassed(received: Int)
        case system(SystemError)
        /// The peer closed before the requested bytes arrived.
        case ended(received: [UInt8])
    }

    private let system: LinuxSystem
    private let descriptor: Descriptor
    private let deadline: MonotonicInstant
    private var events = ReadyEvents()
    private var buffered: [UInt8] = []
    private var isOpen = true

    /// Connects to `address`.
    /// - Parameter limit: timeout for the lifetime of the client.
    package init(connectingTo address: SocketAddress, atMost limit: Duration = .seconds(10)) throws {
        self.system = try LinuxSystem()
        self.deadline = self.system.now().advanced(by: limit)
        self.descriptor = try self.system.connect(address).get()
        _ = self.system.watch(self.descriptor, for: .writable, token: 1)
        do {
            try self.wait(for: .writable)
            if let error = self.system.connectError(self.descriptor) { throw Failure.system(error) }
        } catch {
            self.close()
            throw error
        }
    }

    package convenience init(port: UInt16, atMost limit: Duration = .seconds(10)) throws {
        try self.init(connectingTo: Self.address(port: port), atMost: limit)
    }

    deinit {
        self.close()
    }

    package static func address(port: UInt16) -> SocketAddress {
        .ipv4(address: 0x7f00_0001, port: port)
    }

    private func wait(for interest: Interest) throws {
        self.system.rewatch(self.descriptor, for: interest, token: 1)
        repeat {
            guard self.system.now() < self.deadline else { throw Failure.deadlinePassed(received: self.buffered.count) }
            self.system.wait(&self.events, until: self.deadline)
        } while self.events.events.isEmpty
    }

    package func send(_ bytes: [UInt8]) throws {
        var left = bytes[...]
        while !left.isEmpty {
            switch self.system.send(self.descriptor, left) {
            case .success(let taken): left.removeFirst(taken)
            case .failure(.wouldBlock): try self.wait(for: .writable)
            case .failure(let error): throw Failure.system(error)
            }
        }
    }

    package func send(_ text: String) throws {
        try self.send(Array(text.utf8))
    }

    package func receive(_ count: Int) throws -> [UInt8] {
        while self.buffered.count < count {
            guard try self.readMore() else { throw Failure.ended(received: self.buffered) }
        }
        defer { self.buffered.removeFirst(count) }
        return Array(self.buffered.prefix(count))
    }

    /// Receives all bytes up to and including `mark`.
    package func receive(through mark: [UInt8]) throws -> [UInt8] {
        while true {
            if let end = self.end(of: mark) { return try self.receive(end) }
            guard try self.readMore() else { throw Failure.ended(received: self.buffered) }
        }
    }

    private func end(of mark: [UInt8]) -> Int? {
        guard self.buffered.count >= mark.count else { return nil }
        let start = (0...(self.buffered.count - mark.count)).first { self.buffered[$0...].starts(with: mark) }
        return start.map { $0 + mark.count }
    }

    /// Receives all bytes up to FIN.
    package func receiveToEnd() throws -> [UInt8] {
        while try self.readMore() {}
        defer { self.buffered = [] }
        return self.buffered
    }

    private func readMore() throws -> Bool {
        while true {
            switch self.system.receive(self.descriptor, atMost: 65_536) {
            case .bytes(let bytes):
                self.buffered += bytes
                return true
            case .end: return false
            case .failed(.wouldBlock): try self.wait(for: .readable)
            case .failed(let error): throw Failure.system(error)
            }
        }
    }

    /// Sends FIN; input stays open.
    package func finish() {
        _ = self.system.shutdownOutput(self.descriptor)
    }

    package func reset() {
        guard self.isOpen else { return }
        self.isOpen = false
        self.system.reset(self.descriptor)
    }

    package func close() {
        guard self.isOpen else { return }
        self.isOpen = false
        self.system.close(self.descriptor)
    }
}
