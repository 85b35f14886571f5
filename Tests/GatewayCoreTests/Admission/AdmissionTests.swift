import GatewayConfiguration
import GatewayCore
import StreamTransport
import TestSupport
import Testing

@Suite("Admission of connections")
struct AdmissionTests {
    private static let start = MonotonicInstant(nanoseconds: 0)
    private static let client = IPAddress.v4(0xC000_0201)

    private static func configuration(
        total: Int = 100, connections: Int = 10, perClient: Int = 5, rate: AcceptRate = AcceptRate(),
        names: [String] = ["a"]
    ) -> Configuration {
        let listeners = names.map { name in
            var listener = ListenerConfiguration(name: name, address: .tcp(.loopback, port: 0), kind: .ws)
            listener.limits.maximumConnections = connections
            listener.limits.maximumConnectionsPerClient = perClient
            listener.limits.acceptRate = rate
            return listener
        }
        var configuration = Configuration(listeners: listeners, routes: [])
        configuration.maximumConnections = total
        return configuration
    }

    private static func address(_ number: Int) -> IPAddress { .v4(UInt32(number)) }

    @Test func connectionsAreAdmittedUpToTheTotalLimit() {
        var admission = Admission(Self.configuration(total: 3, names: ["a", "b"]))
        for number in 0..<3 {
            #expect(
                admission.admit(listener: number == 0 ? "a" : "b", client: Self.address(number), at: Self.start) == nil)
        }
        #expect(admission.admit(listener: "a", client: Self.address(9), at: Self.start) == .totalLimit)
        admission.release(listener: "b", client: Self.address(1))
        #expect(admission.admit(listener: "a", client: Self.address(9), at: Self.start) == nil)
        #expect(admission.connections == 3)
    }

    @Test func connectionsAreAdmittedUpToTheListenersLimit() {
        var admission = Admission(Self.configuration(connections: 2, names: ["a", "b"]))
        for number in 0..<2 { _ = admission.admit(listener: "a", client: Self.address(number), at: Self.start) }
        #expect(admission.admit(listener: "a", client: Self.address(3), at: Self.start) == .listenerLimit)
        #expect(admission.admit(listener: "b", client: Self.address(3), at: Self.start) == nil)
    }

    @Test func connectionsAreAdmittedUpToTheClientsLimitForEachListener() {
        var admission = Admission(Self.configuration(perClient: 2, names: ["a", "b"]))
        for _ in 0..<2 { #expect(admission.admit(listener: "a", client: Self.client, at: Self.start) == nil) }
        #expect(admission.admit(listener: "a", client: Self.client, at: Self.start) == .clientLimit)
        #expect(
            admission.admit(listener: "a", client: .v6(high: 0, low: 0xFFFF_C000_0201), at: Self.start) == .clientLimit)
        #expect(admission.admit(listener: "a", client: Self.address(1), at: Self.start) == nil)
        #expect(admission.admit(listener: "b", client: Self.client, at: Self.start) == nil)
        admission.release(listener: "a", client: Self.client)
        #expect(admission.admit(listener: "a", client: Self.client, at: Self.start) == nil)
    }

    @Test func ipv6ClientIsCountedByItsNetwork() {
        var admission = Admission(Self.configuration(perClient: 2))
        for low in 0..<2 as Range<UInt64> {
            #expect(admission.admit(listener: "a", client: .v6(high: 7, low: low), at: Self.start) == nil)
        }
        #expect(admission.admit(listener: "a", client: .v6(high: 7, low: 99), at: Self.start) == .clientLimit)
        #expect(admission.admit(listener: "a", client: .v6(high: 8, low: 0), at: Self.start) == nil)
        #expect(admission.clients(listener: "a") == 2)
    }

    @Test func unixClientsHaveNoLimitPerClient() {
        var admission = Admission(Self.configuration(connections: 3, perClient: 1))
        for _ in 0..<3 { #expect(admission.admit(listener: "a", client: nil, at: Self.start) == nil) }
        #expect(admission.admit(listener: "a", client: nil, at: Self.start) == .listenerLimit)
    }

    @Test func tableOfClientsIsBounded() {
        var admission = Admission(totalLimit: 100, clientTableLimit: 2)
        admission.reload(Self.configuration())
        for number in 0..<2 { _ = admission.admit(listener: "a", client: Self.address(number), at: Self.start) }
        #expect(admission.admit(listener: "a", client: Self.address(2), at: Self.start) == .clientTableFull)
        #expect(admission.admit(listener: "a", client: Self.address(0), at: Self.start) == nil)
        admission.release(listener: "a", client: Self.address(1))
        #expect(admission.admit(listener: "a", client: Self.address(2), at: Self.start) == nil)
    }

    @Test func connectionBeyondTheAcceptRateIsRefused() {
        var admission = Admission(Self.configuration(rate: AcceptRate(perSecond: 2, burst: 3)))
        for number in 0..<3 {
            #expect(admission.admit(listener: "a", client: Self.address(number), at: Self.start) == nil)
        }
        #expect(admission.admit(listener: "a", client: Self.address(3), at: Self.start) == .acceptRate)
        let later = Self.start.advanced(by: .milliseconds(500))
        #expect(admission.admit(listener: "a", client: Self.address(3), at: later) == nil)
        #expect(admission.admit(listener: "a", client: Self.address(4), at: later) == .acceptRate)
    }

    @Test func drainingGatewayAdmitsNothing() {
        var admission = Admission(Self.configuration())
        _ = admission.admit(listener: "a", client: Self.client, at: Self.start)
        admission.beginDrain()
        #expect(admission.admit(listener: "a", client: Self.client, at: Self.start) == .draining)
        admission.release(listener: "a", client: Self.client)
        #expect(admission.connections == 0)
    }

    @Test func reloadKeepsCountsUntilAListenersLastConnection() {
        var admission = Admission(Self.configuration(connections: 10, names: ["a", "b"]))
        for number in 0..<3 { _ = admission.admit(listener: "a", client: Self.address(number), at: Self.start) }
        _ = admission.admit(listener: "b", client: Self.client, at: Self.start)
        admission.reload(Self.configuration(connections: 2, names: ["a"]))
        #expect(admission.connections == 4)
        #expect(admission.admit(listener: "a", client: Self.client, at: Self.start) == .listenerLimit)
        admission.release(listener: "b", client: Self.client)
        #expect(admission.connections == 3)
        #expect(admission.admit(listener: "b", client: Self.client, at: Self.start) == .draining)
    }

    @Test func bothOldAndNewListenersAdmitWhileAReloadIsUnderWay() {
        var admission = Admission(Self.configuration(names: ["a"]))
        admission.prepare(Self.configuration(names: ["b"]))
        #expect(admission.admit(listener: "a", client: Self.address(1), at: Self.start) == nil)
        #expect(admission.admit(listener: "b", client: Self.address(1), at: Self.start) == nil)
        admission.retire(allBut: Self.configuration(names: ["b"]))
        #expect(admission.connections(listener: "a") == 1)
        admission.release(listener: "a", client: Self.address(1))
        #expect(admission.admit(listener: "a", client: Self.address(1), at: Self.start) == .draining)
        #expect(admission.admit(listener: "b", client: Self.address(2), at: Self.start) == nil)
    }

    /// The client's address comes with a PROXY header, which may arrive after the reload.
    @Test func removedListenerIsKeptUntilItsConnectionsAreAdmitted() {
        var admission = Admission(Self.configuration(names: ["a"]))
        admission.beginArrival(listener: "a")
        admission.beginArrival(listener: "a")
        admission.reload(Self.configuration(names: ["b"]))
        #expect(admission.admit(listener: "a", client: Self.address(1), at: Self.start) == nil)
        admission.endArrival(listener: "a")
        admission.release(listener: "a", client: Self.address(1))
        #expect(admission.admit(listener: "a", client: Self.address(2), at: Self.start) == nil)
        admission.release(listener: "a", client: Self.address(2))
        admission.endArrival(listener: "a")
        #expect(admission.admit(listener: "a", client: Self.address(3), at: Self.start) == .draining)
        #expect(admission.connections == 0)
    }

    @Test func releaseWithoutAdmissionChangesNothing() {
        var admission = Admission(Self.configuration())
        admission.release(listener: "a", client: Self.client)
        admission.release(listener: "x", client: nil)
        #expect(admission.connections == 0 && admission.connections(listener: "a") == 0)
    }

    @Test func numberOfAnsweredRefusalsIsBounded() {
        var admission = Admission(totalLimit: 320)
        for _ in 0..<20 { #expect(admission.beginAnswer() == true) }
        #expect(admission.beginAnswer() == false)
        admission.endAnswer()
        #expect(admission.beginAnswer() == true)
    }

    private static let block = ["192.0.2.0/24"]
    private static let one = ["192.0.2.7"]

    @Test(
        arguments: [
            ([], [], 0xC633_6407, true), (block, [], 0xC000_0209, true), (block, [], 0xC000_0309, false),
            ([], one, 0xC000_0207, false), ([], one, 0xC000_0208, true), (block, one, 0xC000_0207, false),
            (block, one, 0xC000_0208, true),
        ] as [([String], [String], UInt32, Bool)])
    func addressOfAClientIsAllowedOrDenied(
        _ allowed: [String], _ denied: [String], _ client: UInt32, _ isAllowed: Bool
    ) throws {
        var limits = ListenerConfiguration(name: "a", address: .tcp(.loopback, port: 0), kind: .ws).limits
        let syntax = ValueSyntax<AddressBlock>.addressBlock
        limits.allowedClients = try allowed.map { try syntax.parse($0) }
        limits.deniedClients = try denied.map { try syntax.parse($0) }
        #expect(limits.allows(.ipv4(address: client, port: 4711)) == isAllowed)
        #expect(limits.allows(.ipv6(high: 0, low: 0xFFFF_0000_0000 | UInt64(client), scope: 0, port: 1)) == isAllowed)
        #expect(limits.allows(.unix(path: "")) == allowed.isEmpty)
    }

    @Test func everyRefusalHasAStatus() {
        let others: [AdmissionRefusal: UInt16] = [.clientAddress: 403, .clientLimit: 429]
        for refusal in AdmissionRefusal.allCases { #expect(refusal.status == others[refusal] ?? 503) }
    }

    @Test(arguments: 0..<50 as Range<UInt64>)
    func countsAreRightInAnyOrderOfArrivalsAndEnds(_ seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var admission = Admission(Self.configuration(total: 12, connections: 8, perClient: 3, names: ["a", "b"]))
        var open: [(String, IPAddress)] = []
        for step in 0..<300 {
            if Bool.random(using: &random) || open.isEmpty {
                let listener = Bool.random(using: &random) ? "a" : "b"
                let client = Self.address(Int.random(in: 0..<4, using: &random))
                let now = Self.start.advanced(by: .seconds(step))
                if admission.admit(listener: listener, client: client, at: now) == nil {
                    open.append((listener, client))
                }
            } else {
                let (listener, client) = open.remove(at: Int.random(in: 0..<open.count, using: &random))
                admission.release(listener: listener, client: client)
            }
            #expect(admission.connections == open.count && open.count <= 12, "seed \(seed)")
            for listener in ["a", "b"] {
                let mine = open.filter { $0.0 == listener }
                #expect(admission.connections(listener: listener) == mine.count && mine.count <= 8, "seed \(seed)")
                #expect(admission.clients(listener: listener) == Set(mine.map(\.1)).count, "seed \(seed)")
            }
        }
    }
}
