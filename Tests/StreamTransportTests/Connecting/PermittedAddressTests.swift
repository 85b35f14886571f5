import SimulatedNetwork
import StreamTransport
import TestSupport
import Testing

@Suite("Addresses that may be connected to")
struct PermittedAddressTests {
    private static let denied = SocketAddress.ipv4(address: 0xA9FE_A9FE, port: 80)
    private static let allowed = SocketAddress.ipv4(address: 0x0A02_0202, port: 80)

    private func connect(
        to target: ConnectTarget, permits: @escaping ConnectAttempt.Permission
    ) throws -> Result<SocketConnection, TransportFailure>? {
        let testbed = TransportTestbed(.simulation)
        let network = try #require(testbed.network)
        let loop = try testbed.makeLoop()
        let host = try testbed.makeHost()
        let listeners = try [Self.denied, Self.allowed].map { try host.listen(at: $0) }
        network.names["two.example"] = .addresses([Self.denied, Self.allowed], after: .milliseconds(1))
        network.names["one.example"] = .addresses([Self.denied], after: .milliseconds(1))
        var result: Result<SocketConnection, TransportFailure>?
        var attempt: ConnectAttempt?
        testbed.perform(on: loop) {
            attempt = ConnectAttempt(target, on: loop, timeout: .seconds(10), permits: permits) { result = $0 }
        }
        #expect(testbed.run(until: { result != nil }))
        testbed.settle()
        #expect(listeners[0].accepted.isEmpty, "a connection to an address that was not permitted")
        testbed.perform(on: loop) {
            if case .success(let connection) = result { connection.reset() }
        }
        withExtendedLifetime(attempt) { host.close() }
        #expect(testbed.close() == [])
        return result
    }

    private static let rule: ConnectAttempt.Permission = { $0 != Self.denied }

    @Test func forbiddenAddressIsSkipped() throws {
        let result = try self.connect(to: .host("two.example", port: 80), permits: Self.rule)
        #expect(try result?.get().peerAddress == Self.allowed)
    }

    @Test(arguments: [
        ConnectTarget.host("one.example", port: 80), .host("169.254.169.254", port: 80), .address(denied),
    ])
    func nameWithoutAPermittedAddressIsNotTried(_ target: ConnectTarget) throws {
        let result = try self.connect(to: target, permits: Self.rule)
        guard case .failure(let failure) = result else {
            Issue.record("connected")
            return
        }
        #expect(failure == .notPermitted(Self.denied))
        #expect(failure.description.contains("169.254.169.254"))
    }
}
