import SimulatedNetwork
import StreamTransport
import TestSupport
import Testing

@Suite("Loops under every fault of the simulated network")
struct LoopUnderFaultsTests {
    private static let name = "echo.example"
    private static let addresses: [SocketAddress] = [
        .ipv6(high: 0x2001_0db8_0000_0000, low: 7, scope: 0, port: 7), .ipv4(address: 0x0a07_0707, port: 7),
    ]

    /// A client that connects, sends its bytes in pieces, and ends in a randomly drawn way.
    private final class Client: TransportConsumer {
        enum EndMode: CaseIterable {
            case finish
            case close
            case reset
        }

        let said: [UInt8]
        let ending: EndMode
        var connection: SocketConnection?
        var attempts: [Result<SocketConnection, TransportFailure>] = []
        private(set) var heard: [UInt8] = []
        private(set) var inputCloses = 0
        private(set) var ends: [TransportEnd] = []

        init(said: [UInt8], ending: EndMode) {
            self.said = said
            self.ending = ending
        }

        func attempted(_ result: Result<SocketConnection, TransportFailure>) {
            self.attempts.append(result)
            guard case .success(let connection) = result else { return }
            self.connection = connection
            connection.consumer = self
            connection.resumeReading()
            connection.write(self.said)
            switch self.ending {
            case .finish: connection.shutdownOutput()
            case .close: connection.close(linger: .seconds(20))
            case .reset: break
            }
        }

        func bytesReceived(_ bytes: inout MutableRawSpan) -> Int {
            // Leaves the last byte of most offers: it must be offered again, once. Nothing is offered again after the end.
            let isLast = self.heard.count + bytes.byteCount >= self.said.count
            let taken = isLast ? bytes.byteCount : max(1, bytes.byteCount - 1)
            for offset in 0..<taken {
                self.heard.append(bytes.bytes.unsafeLoad(fromByteOffset: offset, as: UInt8.self))
            }
            if self.ending == .reset, self.heard.count > self.said.count / 2 { self.connection?.reset() }
            return taken
        }

        func inputClosed() {
            self.inputCloses += 1
            self.connection?.close(linger: .seconds(20))
        }

        func outputProgressed() {}

        func transportEnded(_ end: TransportEnd) {
            self.ends.append(end)
        }
    }

    /// Echoes with watermarks: stops reading while more than `highWatermark` bytes wait.
    private final class Echo: TransportConsumer {
        static let highWatermark = 4_096
        private let connection: SocketConnection
        private(set) var largestQueue = 0
        private(set) var ends: [TransportEnd] = []

        init(_ connection: SocketConnection) {
            self.connection = connection
        }

        func bytesReceived(_ bytes: inout MutableRawSpan) -> Int {
            self.connection.write(bytes.bytes)
            self.largestQueue = max(self.largestQueue, self.connection.queuedBytes)
            if self.connection.queuedBytes > Self.highWatermark {
                self.connection.pauseReading()
                self.connection.awaitProgress()
            }
            return bytes.byteCount
        }

        func inputClosed() {
            self.connection.close(linger: .seconds(20))
        }

        func outputProgressed() {
            if self.connection.queuedBytes < Self.highWatermark / 2 { self.connection.resumeReading() }
        }

        func transportEnded(_ end: TransportEnd) {
            self.ends.append(end)
        }
    }

    private final class EchoServer: SocketListenerOwner {
        private(set) var echoes: [Echo] = []
        private(set) var pauses = 0
        private(set) var resumptions = 0

        func accepted(_ socket: AcceptedSocket, by listener: SocketListener) {
            var options = SocketOptions()
            options.userTimeout = .seconds(30)
            guard
                let connection = try? SocketConnection(
                    adopting: socket.descriptor, peer: socket.peer, on: listener.loop, options: options)
            else { return }
            connection.readLimit = 8_192
            let echo = Echo(connection)
            connection.consumer = echo
            self.echoes.append(echo)
        }

        func acceptingPaused(by listener: SocketListener, _ error: SystemError) {
            self.pauses += 1
        }

        func acceptingResumed(by listener: SocketListener) {
            self.resumptions += 1
        }
    }

    @Test(arguments: UInt64(0)..<40)
    func faultsLoseNoByteAndNoDescriptor(_ seed: UInt64) throws {
        let testbed = TransportTestbed(.simulation, seed: seed)
        let network = try #require(testbed.network)
        let loops = [try testbed.makeLoop(), try testbed.makeLoop()]
        let server = EchoServer()
        let listeners = try Self.addresses.map { try SocketListener($0, on: loops[0], owner: server) }
        network.names[Self.name] = .addresses(Self.addresses, after: .milliseconds(5))
        network.faults = .rough
        var chance = SeededGenerator(seed: seed)
        let clients = (0..<12).map { _ in
            Client(
                said: chance.bytes(Int.random(in: 1...12_000, using: &chance)),
                ending: Client.EndMode.allCases.randomElement(using: &chance) ?? .finish)
        }
        for client in clients {
            testbed.perform(on: loops[1]) {
                _ = ConnectAttempt(
                    .host(Self.name, port: 7), on: loops[1], timeout: .seconds(10), completion: client.attempted)
            }
        }
        network.run(for: .seconds(400))
        for listener in listeners { testbed.perform(on: loops[0]) { listener.close() } }
        network.run(for: .seconds(1))

        let report = Comment(rawValue: "seed \(seed)\n\(network.trace)")
        for client in clients {
            #expect(client.attempts.count == 1, report)
            let intact = client.said.starts(with: client.heard)
            #expect(intact, report)
            guard case .success = client.attempts.first else { continue }
            #expect(client.ends.count == 1 && client.inputCloses <= 1, report)
            guard client.ending == .finish, client.ends == [.closed], client.inputCloses == 1 else { continue }
            #expect(client.heard.count == client.said.count, report)
        }
        for echo in server.echoes {
            #expect(echo.ends.count == 1, report)
            #expect(echo.largestQueue <= Echo.highWatermark + 8_192, report)
        }
        #expect(server.pauses == server.resumptions, report)
        #expect(loops.allSatisfy { $0.watchedCount == 0 }, report)
        #expect(network.openDescriptors == 0, report)
        #expect(testbed.close() == [], report)
    }

    /// A nightly run makes ten thousand networks in one process.
    @Test func loopsLeaveNoMemoryBehind() throws {
        weak var network: SimulatedNetwork?
        weak var loop: Loop?
        weak var connection: SocketConnection?
        do {
            let harness = try LoopHarness(.simulation, seed: 4, faults: .calm)
            network = harness.testbed.network
            loop = harness.loop
            let met = try harness.connect()
            connection = met.connection
            met.peer.send("left unread")
            harness.perform { met.connection.reset() }
            harness.finish()
        }
        #expect(network == nil && loop == nil && connection == nil)
    }
}
