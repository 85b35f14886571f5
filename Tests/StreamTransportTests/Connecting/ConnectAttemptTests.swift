import Foundation
import SimulatedNetwork
import StreamTransport
import TestSupport
import Testing

@Suite("Opening a connection, RFC 8305")
struct ConnectAttemptTests {
    typealias Kind = TransportTestbed.Kind

    private static let name = "server.example"
    private static let six = SocketAddress.ipv6(high: 0x2001_0db8_0000_0000, low: 0xff, scope: 0, port: 80)
    private static let four = SocketAddress.ipv4(address: 0x0a02_0202, port: 80)

    /// A loop that connects, on the simulated network, with a server at both addresses of a name.
    private final class Race {
        let testbed = TransportTestbed(.simulation)
        let network: SimulatedNetwork
        let loop: Loop
        let servers: ScriptedHost
        let listeners: [ScriptedListener]
        var results: [Result<SocketConnection, TransportFailure>] = []
        /// From the beginning to the result.
        var elapsed = Duration.zero
        private(set) var attempt: ConnectAttempt?

        init() throws {
            self.network = try #require(self.testbed.network)
            self.loop = try self.testbed.makeLoop()
            self.servers = try self.testbed.makeHost()
            self.listeners = [
                try self.servers.listen(at: ConnectAttemptTests.six),
                try self.servers.listen(at: ConnectAttemptTests.four),
            ]
            self.network.names[ConnectAttemptTests.name] = .addresses(
                [ConnectAttemptTests.six, ConnectAttemptTests.four], after: .milliseconds(1))
        }

        func begin(
            _ target: ConnectTarget = .host(ConnectAttemptTests.name, port: 80), timeout: Duration = .seconds(10)
        ) {
            self.testbed.perform(on: self.loop) {
                let start = self.network.now
                self.attempt = ConnectAttempt(target, on: self.loop, timeout: timeout) { result in
                    self.results.append(result)
                    self.elapsed = start.duration(to: self.network.now)
                }
            }
        }

        var failure: TransportFailure? {
            if case .failure(let failure) = self.results.first { return failure }
            return nil
        }

        var winner: SocketAddress? {
            try? self.results.first?.get().peerAddress
        }

        /// Closes the connections and expects that no descriptor is left open.
        func finish(sourceLocation: SourceLocation = #_sourceLocation) throws {
            self.network.run(for: .seconds(300))
            #expect(self.results.count <= 1, sourceLocation: sourceLocation)
            if case .success(let connection) = self.results.first {
                self.testbed.perform(on: self.loop) { connection.reset() }
            }
            let system = try #require(self.loop.system as? SimulatedSystem)
            #expect(system.process.openDescriptors == 0, sourceLocation: sourceLocation)
            #expect(self.loop.watchedCount == 0, sourceLocation: sourceLocation)
            #expect(self.testbed.close() == [], sourceLocation: sourceLocation)
        }
    }

    // MARK: Simulated and real

    @Test(arguments: Kind.allCases)
    func connectReadsNothingBeforeItsConsumerResumes(_ kind: Kind) throws {
        let testbed = TransportTestbed(kind)
        let loop = try testbed.makeLoop()
        let host = try testbed.makeHost()
        let listener = try host.listen(at: SocketPair.tcp)
        var result: Result<SocketConnection, TransportFailure>?
        testbed.perform(on: loop) {
            _ = ConnectAttempt(.address(listener.address), on: loop, timeout: .seconds(10)) { result = $0 }
            #expect(result == nil)
        }
        #expect(testbed.run(until: { result != nil && listener.accepted.count == 1 }))
        let connection = try #require(try result?.get())
        #expect(connection.peerAddress == listener.address)
        listener.accepted[0].send("greeting")
        testbed.settle()
        let consumer = RecordingConsumer()
        testbed.perform(on: loop) {
            connection.consumer = consumer
            connection.resumeReading()
            connection.write("hello")
        }
        #expect(testbed.run(until: { consumer.text == "greeting" && listener.accepted[0].received.count == 5 }))
        testbed.perform(on: loop) { connection.reset() }
        #expect(loop.watchedCount == 0)
        host.close()
        #expect(testbed.close() == [])
    }

    @Test(arguments: Kind.allCases)
    func localhostIsConnectedTo(_ kind: Kind) throws {
        let testbed = TransportTestbed(kind)
        let loop = try testbed.makeLoop()
        let host = try testbed.makeHost()
        // If localhost is ::1 first, that address has no listener, and 127.0.0.1 is tried next.
        let listener = try host.listen(at: SocketPair.tcp)
        let port = try #require(listener.address.port)
        var result: Result<SocketConnection, TransportFailure>?
        var isResolved = false
        testbed.perform(on: loop) {
            _ = ConnectAttempt(
                .host("localhost", port: port), on: loop, timeout: .seconds(10), didResolve: { isResolved = true }
            ) { result = $0 }
        }
        #expect(testbed.run(until: { result != nil }))
        let connection = try #require(try result?.get())
        #expect(connection.peerAddress == listener.address)
        #expect(isResolved)
        testbed.perform(on: loop) { connection.reset() }
        host.close()
    }

    @Test(arguments: Kind.allCases)
    func refusedConnectionIsReported(_ kind: Kind) throws {
        let testbed = TransportTestbed(kind)
        let loop = try testbed.makeLoop()
        let host = try testbed.makeHost()
        let listener = try host.listen(at: SocketPair.tcp)
        let address = listener.address
        listener.close()
        var result: Result<SocketConnection, TransportFailure>?
        testbed.perform(on: loop) {
            _ = ConnectAttempt(.address(address), on: loop, timeout: .seconds(10)) { result = $0 }
        }
        #expect(testbed.run(until: { result != nil }))
        #expect(throws: TransportFailure.refused) { try result?.get() }
        #expect(loop.watchedCount == 0)
    }

    // MARK: The order of addresses

    @Test func addressFamiliesAlternateFromTheResolversFirst() {
        func four(_ number: UInt32) -> SocketAddress { .ipv4(address: number, port: 1) }
        func six(_ number: UInt64) -> SocketAddress { .ipv6(high: 0, low: number, scope: 0, port: 1) }
        #expect(AddressOrder.interleaved([]) == [])
        #expect(AddressOrder.interleaved([six(1), six(2), four(1), six(3)]) == [six(1), four(1), six(2), six(3)])
        #expect(AddressOrder.interleaved([four(1), four(2), six(1), six(2)]) == [four(1), six(1), four(2), six(2)])
    }

    @Test func firstAddressThatAnswersWins() throws {
        let race = try Race()
        race.begin()
        #expect(race.testbed.run(until: { !race.results.isEmpty }))
        #expect(race.winner == Self.six)
        // A lookup of 1 ms, and there and back in 50 µs each.
        #expect(race.elapsed == .microseconds(1_100))
        race.network.settle()
        #expect(race.listeners[0].accepted.count == 1 && race.listeners[1].accepted.isEmpty)
        try race.finish()
    }

    @Test func nextAddressIsTriedWhileOneHangs() throws {
        let race = try Race()
        race.network.connectScripts[Self.six] = .hangs
        race.begin()
        #expect(race.testbed.run(until: { !race.results.isEmpty }))
        #expect(race.winner == Self.four)
        #expect(race.elapsed == .microseconds(1_100) + ConnectAttempt.attemptDelay)
        try race.finish()
    }

    @Test func nextAddressIsTriedAtOnceAfterARefusal() throws {
        for script in [ConnectScript.refused, .unreachable] {
            let race = try Race()
            race.network.connectScripts[Self.six] = script
            race.begin()
            #expect(race.testbed.run(until: { !race.results.isEmpty }))
            #expect(race.winner == Self.four)
            #expect(race.elapsed == .microseconds(1_200))
            try race.finish()
        }
    }

    @Test func addressWithoutARouteIsSkipped() throws {
        let race = try Race()
        race.network.connectScripts[Self.six] = .noRoute
        race.begin()
        #expect(race.testbed.run(until: { !race.results.isEmpty }))
        #expect(race.winner == Self.four)
        #expect(race.elapsed == .microseconds(1_100))
        try race.finish()
    }

    @Test func addressHasItsWholeDelayAfterASlowLookup() throws {
        let race = try Race()
        race.network.names[Self.name] = .addresses([Self.six, Self.four], after: .seconds(3))
        race.network.connectScripts[Self.six] = .delayed(.milliseconds(200))
        race.begin()
        #expect(race.testbed.run(until: { !race.results.isEmpty }))
        race.network.settle()
        #expect(race.winner == Self.six)
        #expect(race.elapsed == .microseconds(3_200_100))
        #expect(race.listeners[1].accepted.isEmpty)
        try race.finish()
    }

    @Test func firstAddressStaysInTheRaceWithTheSecond() throws {
        let race = try Race()
        race.network.connectScripts[Self.six] = .delayed(.milliseconds(400))
        race.network.connectScripts[Self.four] = .delayed(.milliseconds(300))
        race.begin()
        #expect(race.testbed.run(until: { !race.results.isEmpty }))
        #expect(race.winner == Self.six)
        #expect(race.elapsed == .microseconds(401_100))
        // The slower attempt is closed before it was connected, and never accepted.
        race.network.settle()
        #expect(race.listeners[1].accepted.isEmpty)
        try race.finish()
    }

    @Test func attemptFailsWhenEveryAddressFailed() throws {
        let race = try Race()
        race.network.connectScripts[Self.six] = .unreachable
        race.network.connectScripts[Self.four] = .refused
        race.begin()
        #expect(race.testbed.run(until: { !race.results.isEmpty }))
        #expect(race.failure == .refused)
        try race.finish()
    }

    @Test func pendingAddressIsAwaitedAfterTheOthersFailed() throws {
        let race = try Race()
        race.network.connectScripts[Self.six] = .delayed(.seconds(2))
        race.network.connectScripts[Self.four] = .refused
        race.begin()
        #expect(race.testbed.run(until: { !race.results.isEmpty }))
        #expect(race.winner == Self.six)
        try race.finish()
    }

    @Test func atMostSixteenAddressesAreTried() throws {
        let race = try Race()
        let many = (1...40).map { SocketAddress.ipv4(address: 0x0a03_0000 + UInt32($0), port: 80) }
        race.network.names[Self.name] = .addresses(many)
        for address in many { race.network.connectScripts[address] = .hangs }
        race.begin(timeout: .seconds(60))
        race.network.run(for: .seconds(30))
        let system = try #require(race.loop.system as? SimulatedSystem)
        #expect(system.process.openDescriptors == ConnectAttempt.addressLimit)
        race.network.run(for: .seconds(31))
        #expect(race.failure == .deadlinePassed(.connecting))
        try race.finish()
    }

    // MARK: Failures, deadlines, cancellation

    @Test func nameLookupFailureHasItsReason() throws {
        let failures: [ResolutionFailure] = [.nameNotFound, .temporarilyUnavailable, .failed("words")]
        for failure in failures {
            let race = try Race()
            race.network.names[Self.name] = .failure(failure)
            race.begin()
            #expect(race.testbed.run(until: { !race.results.isEmpty }))
            #expect(race.failure == .nameResolution(failure))
            try race.finish()
        }
    }

    @Test func nameWithoutAddressesIsAFailure() throws {
        let race = try Race()
        race.network.names[Self.name] = .addresses([])
        race.begin()
        #expect(race.testbed.run(until: { !race.results.isEmpty }))
        #expect(race.failure == .nameResolution(.nameNotFound))
        try race.finish()
    }

    @Test func numericAddressNeedsNoLookup() throws {
        let race = try Race()
        race.begin(.host("10.2.2.2", port: 80))
        #expect(race.testbed.run(until: { !race.results.isEmpty }))
        #expect(race.winner == Self.four)
        #expect(race.elapsed == .microseconds(100))
        try race.finish()
    }

    @Test func deadlineFailureNamesItsStep() throws {
        let resolving = try Race()
        resolving.network.names[Self.name] = .silence
        resolving.begin(timeout: .seconds(2))
        #expect(resolving.testbed.run(until: { !resolving.results.isEmpty }))
        #expect(resolving.failure == .deadlinePassed(.resolving))
        #expect(resolving.elapsed == .seconds(2))
        try resolving.finish()

        let connecting = try Race()
        connecting.network.connectScripts[Self.six] = .hangs
        connecting.network.connectScripts[Self.four] = .hangs
        connecting.begin(timeout: .seconds(2))
        #expect(connecting.testbed.run(until: { !connecting.results.isEmpty }))
        #expect(connecting.failure == .deadlinePassed(.connecting))
        #expect(connecting.elapsed == .seconds(2))
        try connecting.finish()
    }

    @Test func cancelledAttemptReportsNothing() throws {
        for instant in [Duration.zero, .microseconds(500), .milliseconds(100), .milliseconds(300)] {
            let race = try Race()
            race.network.connectScripts[Self.six] = .hangs
            race.network.connectScripts[Self.four] = .hangs
            race.begin()
            race.network.run(for: instant)
            race.testbed.perform(on: race.loop) { race.attempt?.cancel() }
            race.network.run(for: .seconds(60))
            #expect(race.results.isEmpty)
            try race.finish()
        }
    }

    @Test func exhaustedDescriptorsAreReported() throws {
        let race = try Race()
        let system = try #require(race.loop.system as? SimulatedSystem)
        system.process.descriptorLimit = 0
        race.begin()
        #expect(race.testbed.run(until: { !race.results.isEmpty }))
        #expect(race.failure == .ownResources(.processDescriptorsExhausted))
        try race.finish()
    }
}
