import Foundation
import SimulatedNetwork
import StreamTransport
import TestSupport
import Testing

#if canImport(Glibc)
    import Glibc
#endif

/// The cause of a failed attempt decides whether the endpoint is ejected, and which status a client receives.
@Suite("Unusable endpoints and missing local resources")
struct UnusableEndpointTests {
    typealias Kind = TransportTestbed.Kind

    private static func failure(connectingTo target: SocketAddress, on testbed: TransportTestbed) throws
        -> TransportFailure?
    {
        let loop = try testbed.makeLoop()
        var result: Result<SocketConnection, TransportFailure>?
        testbed.perform(on: loop) {
            _ = ConnectAttempt(.address(target), on: loop, timeout: .seconds(10)) { result = $0 }
        }
        #expect(testbed.run(until: { result != nil }))
        #expect(loop.watchedCount == 0)
        if case .failure(let failure) = result { return failure }
        return nil
    }

    private static func path() -> String { "/tmp/endpoint-\(UUID().uuidString.prefix(8)).sock" }

    @Test(arguments: Kind.allCases)
    func missingSocketIsNoSuchFile(_ kind: Kind) throws {
        let failure = try Self.failure(connectingTo: .unix(path: Self.path()), on: TransportTestbed(kind))
        #expect(failure == .noSuchFile && failure?.isLocalResourceFailure == false)
        #expect(failure?.description == "no such file")
    }

    @Test(arguments: Kind.allCases)
    func aSocketWithoutAListenerRefuses(_ kind: Kind) throws {
        let testbed = TransportTestbed(kind)
        let host = try testbed.makeHost()
        let path = Self.path()
        defer { unlink(path) }
        let listener = try host.listen(at: .unix(path: path))
        listener.close()
        #expect(try Self.failure(connectingTo: .unix(path: path), on: testbed) == .refused)
        host.close()
    }

    @Test(arguments: Kind.allCases)
    func aFullQueueIsTheEndpointsFault(_ kind: Kind) throws {
        let testbed = TransportTestbed(kind)
        let system = try testbed.makeSystem()
        let path = Self.path()
        defer { unlink(path) }
        var options = ListenOptions()
        options.backlog = 1
        let listening = try system.listen(.unix(path: path), options: options).get()
        var fillers: [Descriptor] = []
        // Linux takes one more than the backlog.
        while fillers.count < 10, case .success(let filler) = system.connect(.unix(path: path)) {
            fillers.append(filler)
        }
        #expect((1..<10).contains(fillers.count))
        let failure = try Self.failure(connectingTo: .unix(path: path), on: testbed)
        #expect(failure == .unusableEndpoint(.wouldBlock) && failure?.isLocalResourceFailure == false)
        #expect(failure?.description == "the socket's queue of connections is full")
        for descriptor in fillers + [listening] { system.close(descriptor) }
    }

    @Test func aFileThatForbidsItIsTheEndpointsFault() throws {
        let testbed = TransportTestbed(.simulation)
        let system = try testbed.makeSystem()
        var options = ListenOptions()
        options.mode = 0
        let listening = try system.listen(.unix(path: "/run/forbidden.sock"), options: options).get()
        let failure = try Self.failure(connectingTo: .unix(path: "/run/forbidden.sock"), on: testbed)
        #expect(failure == .unusableEndpoint(.accessDenied) && failure?.isLocalResourceFailure == false)
        system.close(listening)
    }

    @Test func aFileOfAnotherKindIsTheEndpointsFault() throws {
        let path = Self.path()
        defer { unlink(path) }
        try Data().write(to: URL(fileURLWithPath: path))
        let plain = try Self.failure(connectingTo: .unix(path: path), on: TransportTestbed(.sockets))
        #expect(plain == .unusableEndpoint(.notSocket) && plain?.description == "the file is not a socket")
    }

    @Test func aDatagramSocketIsTheEndpointsFault() throws {
        let path = Self.path()
        defer { unlink(path) }
        let datagrams = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)
        defer { close(datagrams) }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        let bound = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(datagrams, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        #expect(bound == 0)
        let failure = try Self.failure(connectingTo: .unix(path: path), on: TransportTestbed(.sockets))
        #expect(failure == .unusableEndpoint(.wrongSocketType) && failure?.isLocalResourceFailure == false)
        #expect(failure?.description == "the socket is not a stream socket")
    }

    @Test func exhaustedPortsAndDescriptorsAreLocalFailures() throws {
        let target = SocketAddress.ipv4(address: 0x0a02_0202, port: 80)
        let testbed = TransportTestbed(.simulation)
        let network = try #require(testbed.network)
        network.connectScripts[target] = .noLocalPort
        let ports = try Self.failure(connectingTo: target, on: testbed)
        #expect(ports == .ownResources(.addressNotAvailable) && ports?.isLocalResourceFailure == true)
        network.connectScripts[target] = nil
        network.faults.exhaustion = 1
        let descriptors = try Self.failure(connectingTo: target, on: testbed)
        #expect(
            descriptors == .ownResources(.processDescriptorsExhausted) && descriptors?.isLocalResourceFailure == true)
    }

    /// Failures of the tried addresses do not hide that others could not be tried.
    @Test func localResourceFailureOfAnyAddressIsReported() throws {
        let (first, second) = (
            SocketAddress.ipv4(address: 0x0a02_0202, port: 80), SocketAddress.ipv4(address: 0x0a02_0203, port: 80)
        )
        let testbed = TransportTestbed(.simulation)
        let network = try #require(testbed.network)
        network.names["server.example"] = .addresses([first, second], after: .milliseconds(1))
        network.connectScripts[first] = .noLocalPort
        network.connectScripts[second] = .refused
        let loop = try testbed.makeLoop()
        var result: Result<SocketConnection, TransportFailure>?
        testbed.perform(on: loop) {
            _ = ConnectAttempt(.host("server.example", port: 80), on: loop, timeout: .seconds(10)) { result = $0 }
        }
        #expect(testbed.run(until: { result != nil }))
        #expect(throws: TransportFailure.ownResources(.addressNotAvailable)) { try result?.get() }
    }
}
