import SimulatedNetwork
import StreamTransport
import TestSupport
import Testing

/// Whether the failure of an attempt is the server's or that of this machine's own networks.
@Suite("Connecting without a network")
struct OfflineTests {
    private static let four = SocketAddress.ipv4(address: 0x0A02_0202, port: 80)
    private static let six = SocketAddress.ipv6(high: 0x2001_0DB8_0000_0000, low: 0xFF, scope: 0, port: 80)

    private static func failure(
        _ target: ConnectTarget = .host("server.example", port: 80), path: PathOptions = PathOptions(),
        _ prepare: (SimulatedNetwork) -> Void
    ) throws -> TransportFailure? {
        let testbed = TransportTestbed(.simulation)
        let network = try #require(testbed.network)
        network.names["server.example"] = .addresses([self.four, self.six], after: .milliseconds(1))
        prepare(network)
        let loop = try testbed.makeLoop()
        var result: Result<SocketConnection, TransportFailure>?
        testbed.perform(on: loop) {
            _ = ConnectAttempt(target, on: loop, path: path, timeout: .seconds(10)) { result = $0 }
        }
        #expect(testbed.run(until: { result != nil }))
        #expect(loop.watchedCount == 0)
        if case .failure(let failure) = result { return failure }
        return nil
    }

    @Test func noRouteToAnyAddressIsOffline() throws {
        let failure = try Self.failure { network in
            network.connectScripts = [Self.four: .noRoute, Self.six: .noRoute]
        }
        #expect(failure == .offline(.noRoute(.networkUnreachable)))
        #expect(failure?.systemError == .networkUnreachable && failure?.isLocalResourceFailure == false)
    }

    /// Most networks lack one of the two protocols.
    @Test(arguments: [ConnectScript.refused, .unreachable])
    func anAddressThatWasTriedDecides(_ script: ConnectScript) throws {
        let expected: TransportFailure = script == .refused ? .refused : .unreachable(.hostUnreachable)
        let last = try Self.failure { $0.connectScripts = [Self.four: script, Self.six: .noRoute] }
        #expect(last == expected)
        let first = try Self.failure { $0.connectScripts = [Self.four: .noRoute, Self.six: script] }
        #expect(first == expected)
    }

    @Test func aNeighbourIsUnreachableWhereTheLinkIsGone() throws {
        let host = SocketAddress.ipv4(address: 0x0A02_0202, port: 0)
        for isUsable in [true, false] {
            let failure = try Self.failure(.address(Self.four)) { network in
                network.connectScripts[Self.four] = .unreachable
                network.routes[host] = [Route(interface: 2)]
                network.unusableInterfaces = isUsable ? [] : [2]
            }
            #expect(failure == (isUsable ? .unreachable(.hostUnreachable) : .offline(.noRoute(.networkDown))))
        }
    }

    @Test func forbiddenInterfacesAreTheReason() throws {
        var path = PathOptions()
        path.forbidden = [.cellular, .expensive]
        let failure = try Self.failure(path: path) { network in
            network.interfaceClasses[2] = .expensive
            network.routes[.ipv4(address: 0x0A02_0202, port: 0)] = [Route(interface: 2)]
            network.connectScripts[Self.six] = .noRoute
        }
        #expect(failure == .offline(.forbidden(.expensive)))
    }
}
