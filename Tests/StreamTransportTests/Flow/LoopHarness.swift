import SimulatedNetwork
import StreamTransport
import TestSupport
import Testing

/// A loop that listens and a program of scripted peers that connect to it, on either testbed.
final class LoopHarness {
    let testbed: TransportTestbed
    let loop: Loop
    let host: ScriptedHost
    let collector = ConnectionCollector()
    let listener: SocketListener

    init(
        _ kind: TransportTestbed.Kind, at address: SocketAddress = .ipv4(address: 0x7f00_0001, port: 0),
        options: ListenOptions = ListenOptions(), seed: UInt64 = 1, faults: FaultPlan = .calm
    ) throws {
        self.testbed = TransportTestbed(kind, seed: seed, faults: faults)
        self.loop = try self.testbed.makeLoop()
        self.host = try self.testbed.makeHost()
        self.listener = try SocketListener(address, options: options, on: self.loop, owner: self.collector)
    }

    /// A new connection: the loop's end, the record of its consumer, and the test's end.
    /// - Parameter address: `nil` is the listener's address.
    func connect(
        to address: SocketAddress? = nil
    ) throws -> (connection: SocketConnection, consumer: RecordingConsumer, peer: ScriptedPeer) {
        let before = self.collector.connections.count
        let peer = try self.host.connect(to: address ?? self.listener.address)
        #expect(self.run { peer.isConnected && self.collector.connections.count > before })
        return (try #require(self.collector.connections.last), try #require(self.collector.consumers.last), peer)
    }

    /// More bytes than the kernel's buffers of both ends hold, in a pattern in which missing or moved bytes are detected.
    var flood: [UInt8] {
        let pattern = (0..<65_521).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        var bytes: [UInt8] = []
        while bytes.count < (self.testbed.kind == .sockets ? 16_000_000 : 1_000_000) { bytes += pattern }
        return bytes
    }

    func run(atMost limit: Duration = .seconds(10), until condition: () -> Bool) -> Bool {
        self.testbed.run(until: condition, atMost: limit)
    }

    func perform(_ body: @escaping () -> Void) {
        self.testbed.perform(on: self.loop, body)
    }

    /// Closes what listens, and expects that nothing was done wrong and nothing is left open.
    func finish(sourceLocation: SourceLocation = #_sourceLocation) {
        self.perform { self.listener.close() }
        self.testbed.settle()
        self.host.close()
        self.testbed.settle()
        #expect(self.loop.watchedCount == 0, sourceLocation: sourceLocation)
        if let system = self.loop.system as? SimulatedSystem {
            #expect(system.process.openDescriptors == 0, sourceLocation: sourceLocation)
        }
        #expect(self.testbed.close() == [], sourceLocation: sourceLocation)
    }
}

extension SocketConnection {
    func write(_ text: String) {
        self.write(Array(text.utf8))
    }

    func write(_ bytes: [UInt8]) {
        self.write(bytes.span.bytes)
    }
}
