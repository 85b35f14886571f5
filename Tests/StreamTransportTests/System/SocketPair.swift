import StreamTransport
import TestSupport
import Testing

/// Two connected descriptors, `a` having connected to `b`, with direct calls on either: the test plays both programs.
final class SocketPair {
    static let tcp = SocketAddress.ipv4(address: 0x7f00_0001, port: 0)

    let testbed: TransportTestbed
    let system: any System
    let a: Descriptor
    let b: Descriptor
    private var events = ReadyEvents()

    init(_ testbed: TransportTestbed, at address: SocketAddress = SocketPair.tcp) throws {
        self.testbed = testbed
        let system = try testbed.makeSystem()
        self.system = system
        let listener = try system.listen(address, options: ListenOptions()).get()
        let target = try #require(system.localAddress(listener))
        self.a = try system.connect(target).get()
        var accepted: Descriptor?
        _ = testbed.run(until: {
            accepted = try? system.accept(listener).get().descriptor
            return accepted != nil
        })
        self.b = try #require(accepted)
        system.close(listener)
        testbed.settle()
    }

    /// The readiness of `descriptor` that epoll reports when all events are requested.
    func ready(_ descriptor: Descriptor) -> Interest {
        self.testbed.settle()
        _ = self.system.watch(descriptor, for: [.readable, .writable], token: 7)
        self.system.wait(&self.events, until: self.system.now())
        self.system.unwatch(descriptor)
        return self.events.events.first?.ready ?? []
    }

    func receive(_ descriptor: Descriptor, atMost limit: Int = 100) -> ReceivedBytes {
        self.testbed.settle()
        return self.system.receive(descriptor, atMost: limit)
    }

    @discardableResult
    func send(_ descriptor: Descriptor, _ text: String) -> Result<Int, SystemError> {
        defer { self.testbed.settle() }
        return self.system.send(descriptor, Array(text.utf8)[...])
    }

    /// Sends until the kernel takes no more.
    func fill(_ descriptor: Descriptor) -> Int {
        let piece = [UInt8](repeating: 0x78, count: 4096)
        var total = 0
        while case .success(let taken) = self.system.send(descriptor, piece[...]) {
            total += taken
            self.testbed.settle(rounds: 1)
        }
        return total
    }

    /// Reads until nothing more waits.
    func drain(_ descriptor: Descriptor) -> (count: Int, last: ReceivedBytes) {
        var total = 0
        while true {
            switch self.receive(descriptor, atMost: 65_536) {
            case .bytes(let bytes): total += bytes.count
            case let last: return (total, last)
            }
        }
    }
}

extension ReceivedBytes {
    static func text(_ text: String) -> ReceivedBytes {
        .bytes(Array(text.utf8))
    }

    static let wouldBlock = ReceivedBytes.failed(.wouldBlock)
}
