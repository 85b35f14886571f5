import SimulatedNetwork
import StreamTransport
import Synchronization
import Testing

@Suite("Descriptors kept in reserve")
struct DescriptorReserveTests {
    /// A limit that a test sets: at 0 every number is above it, whatever else the process has open.
    private final class Limit: Sendable {
        let value = Mutex(0)

        var reserve: DescriptorReserve {
            DescriptorReserve { self.value.withLock { $0 } }
        }
    }

    private static let plenty = 1_000_000

    @Test(arguments: [
        (48, 8, 40, 44), (256, 32, 224, 240), (1024, 64, 960, 992), (1_048_576, 64, 1_048_512, 1_048_544),
    ])
    func reserveIsAnEighthAndAtMostSixtyFour(_ limit: Int, _ reserve: Int, _ ceiling: Int, _ inner: Int) {
        let budget = DescriptorBudget(limit: limit)
        #expect(budget.reserve == reserve)
        #expect(budget.ceiling == ceiling)
        #expect(budget.innerCeiling == inner)
    }

    @Test(arguments: [48, 64, 256, 1024, 20_000, 1_048_576], [1, 2])
    func connectionsAreOfferedOnlyWithFreeDescriptors(_ limit: Int, _ each: Int) {
        let budget = DescriptorBudget(limit: limit)
        let connections = budget.connections(each: each)
        #expect(connections >= 1)
        #expect(connections == 1 || connections * each + budget.controlConnections + budget.reserve < limit)
    }

    @Test func reserveIsNotUsedForOutgoingConnections() throws {
        let limit = Limit()
        let system = try LinuxSystem(reserve: limit.reserve)
        limit.value.withLock { $0 = Self.plenty }
        let listener = try system.listen(SocketPair.tcp, options: ListenOptions()).get()
        let place = try #require(system.localAddress(listener))
        limit.value.withLock { $0 = 0 }
        #expect(system.connect(place) == .failure(.processDescriptorsExhausted))
        #expect(!system.hasDescriptors)
        limit.value.withLock { $0 = Self.plenty }
        let connection = try system.connect(place).get()
        #expect(system.hasDescriptors)
        system.close(connection)
        system.close(listener)
    }

    /// The connection that accept(2) returned before the reserve was reached is served; all later ones wait.
    @Test func atMostOneConnectionIsAcceptedAtTheReserve() throws {
        let limit = Limit()
        let system = try LinuxSystem(reserve: limit.reserve)
        let host = try LinuxSystem()
        limit.value.withLock { $0 = Self.plenty }
        let listener = try system.listen(SocketPair.tcp, options: ListenOptions()).get()
        let place = try #require(system.localAddress(listener))
        let clients = try (0..<3).map { _ in try host.connect(place).get() }
        limit.value.withLock { $0 = 0 }
        let first = try self.accept(listener, system).get()
        #expect(self.accept(listener, system) == .failure(.processDescriptorsExhausted))
        limit.value.withLock { $0 = Self.plenty }
        let others = try (0..<2).map { _ in try self.accept(listener, system).get() }
        for socket in [first] + others { system.close(socket.descriptor) }
        for client in clients { host.close(client) }
        system.close(listener)
    }

    /// A connection to loopback is in the queue as soon as it has been made; until then there is nothing to accept.
    private func accept(_ listener: Descriptor, _ system: LinuxSystem) -> Result<AcceptedSocket, SystemError> {
        for _ in 0..<1_000_000 {
            let result = system.accept(listener)
            if result != .failure(.wouldBlock) { return result }
        }
        return .failure(.wouldBlock)
    }

    @Test func innerHalfOfTheReserveOpensNoListener() throws {
        let limit = Limit()
        let system = try LinuxSystem(reserve: limit.reserve)
        #expect(system.listen(SocketPair.tcp, options: ListenOptions()) == .failure(.processDescriptorsExhausted))
        limit.value.withLock { $0 = Self.plenty }
        system.close(try system.listen(SocketPair.tcp, options: ListenOptions()).get())
    }

    @Test func nameIsNotResolvedWithoutAFreeDescriptor() throws {
        let network = SimulatedNetwork(seed: 1)
        network.names["server.test"] = .addresses([.ipv4(address: 0x0a09_0001, port: 0)], after: .seconds(5))
        let system = network.makeSystem()
        let loop = Loop(system: system)
        system.drive { loop.turn() }
        system.process.descriptorLimit = system.process.openDescriptors
        var failure: TransportFailure?
        let attempt = ConnectAttempt(.host("server.test", port: 80), on: loop, timeout: .seconds(10)) { result in
            if case .failure(let met) = result { failure = met }
        }
        defer { attempt.cancel() }
        #expect(network.run(until: { failure != nil }, atMost: .seconds(1)) == .conditionMet)
        #expect(failure == .ownResources(.processDescriptorsExhausted))
    }

    @Test func shortageNamesTheLimitAndARemedy() {
        let text = DescriptorReserve { 256 }.description
        #expect(text.hasPrefix("no descriptors: "))
        #expect(text.hasSuffix(" of 256 in use, 32 kept in reserve; raise LimitNOFILE"))
    }
}
