import SimulatedNetwork
import StreamTransport
import Synchronization
import TestSupport
import Testing

@Suite("Interfaces that NetworkManager calls metered")
struct MeteredMonitorTests {
    private static let address = SocketAddress.unix(path: "@bus")

    private final class Scene {
        let testbed = TransportTestbed(.simulation)
        let network: SimulatedNetwork
        let loop: Loop
        let listener: ScriptedListener
        let bus: ScriptedBus
        private let host: ScriptedHost

        init() throws {
            self.network = try #require(self.testbed.network)
            self.loop = try self.testbed.makeLoop()
            self.host = try self.testbed.makeHost()
            self.listener = try self.host.listen(at: MeteredMonitorTests.address)
            self.bus = ScriptedBus(self.listener)
            self.network.systemBus = MeteredMonitorTests.address
        }

        var monitor: MeteredMonitor { PathMonitor.shared(on: self.loop).metered }

        /// - Returns: how long it took, in virtual time.
        @discardableResult
        func learn() -> Duration {
            let start = self.network.now
            var end: MonotonicInstant?
            self.testbed.perform(on: self.loop) { self.monitor.whenKnown { end = self.network.now } }
            self.run(.seconds(2)) { end != nil }
            return start.duration(to: end ?? self.network.now)
        }

        func run(_ duration: Duration, until condition: () -> Bool = { false }) {
            _ = self.testbed.run(
                until: {
                    self.bus.step()
                    return condition()
                }, atMost: duration)
        }

        func perform(_ body: @escaping () -> Void) { self.testbed.perform(on: self.loop, body) }
    }

    private final class Observer: PathObserver {
        var calls = 0
        func pathsChanged() { self.calls += 1 }
    }

    @Test func yesAndGuessedYesAreMetered() throws {
        let scene = try Scene()
        scene.bus.devices = [
            ("eth0", 0), ("wlan0", 1), ("wwan0", 3), ("eth1", 2), ("eth2", 4), ("usb0", 99), ("gone", nil),
        ]
        scene.bus.machine = 3
        #expect(scene.learn() < .milliseconds(100))
        #expect(scene.monitor.networks.interfaces == ["wlan0", "wwan0"] && scene.monitor.networks.isMachineMetered)
        #expect(scene.loop.system.classes(ofInterface: 2, metered: ["near2"]) == .expensive)
    }

    @Test func nothingIsAskedBeforeItIsNeeded() throws {
        let scene = try Scene()
        let attempt = ConnectAttempt(
            .address(.ipv4(address: 0x0A01_0001, port: 9)), on: scene.loop, timeout: .seconds(1)
        ) { _ in }
        scene.run(.seconds(2))
        attempt.cancel()
        #expect(scene.listener.accepted.isEmpty)
    }

    @Test func changesAreReadOnceForAGroupOfSignals() throws {
        let scene = try Scene()
        let observer = Observer()
        scene.bus.devices = [("near1", 2)]
        scene.learn()
        scene.perform { PathMonitor.shared(on: scene.loop).add(observer) }
        scene.run(.seconds(5))
        let (before, calls) = (observer.calls, scene.bus.calls.count)
        scene.bus.devices[0].metered = 1
        for _ in 0..<20 { scene.bus.notify() }
        scene.run(.seconds(1))
        #expect(scene.monitor.networks.interfaces == ["near1"])
        #expect(observer.calls > before && scene.bus.calls.count == calls + 5)
        // Another signal without a change.
        let after = observer.calls
        scene.bus.notify()
        scene.run(.seconds(1))
        #expect(scene.bus.calls.count == calls + 10)
        scene.perform { PathMonitor.shared(on: scene.loop).remove(observer) }
        #expect(observer.calls - after <= 1)
    }

    @Test func withoutABusNothingIsMetered() throws {
        let scene = try Scene()
        scene.listener.close()
        #expect(scene.learn() < .milliseconds(100) && scene.monitor.networks == MeteredNetworks())
        scene.network.systemBus = nil
        scene.perform { scene.monitor.close() }
        #expect(scene.learn() == .zero)
    }

    @Test func withoutNetworkManagerNothingIsMetered() throws {
        let scene = try Scene()
        scene.bus.hasNetworkManager = false
        #expect(scene.learn() < .milliseconds(100) && scene.monitor.networks == MeteredNetworks())
        #expect(scene.bus.clientCount == 1)
    }

    @Test func silentBusDelaysOneConnectionOnly() throws {
        let scene = try Scene()
        scene.bus.isSilent = true
        scene.bus.devices = [("near1", 1)]
        #expect(scene.learn() == MeteredMonitor.firstAnswerTimeout)
        #expect(scene.learn() == .zero && scene.monitor.networks == MeteredNetworks())
        // While the monitor is used, the bus is tried again.
        scene.bus.isSilent = false
        scene.run(MeteredMonitor.checkInterval + .seconds(1))
        #expect(scene.monitor.networks.interfaces == ["near1"])
    }

    @Test func busThatStopsAnsweringIsGivenUp() throws {
        let scene = try Scene()
        scene.bus.devices = [("near1", 1)]
        scene.learn()
        #expect(scene.monitor.networks.interfaces == ["near1"])
        scene.bus.notify()
        scene.run(.milliseconds(50))
        scene.bus.isSilent = true
        scene.run(MeteredMonitor.readingTimeout + .seconds(1))
        #expect(scene.monitor.networks.interfaces.isEmpty)
    }

    @Test func lostBusIsFoundAgain() throws {
        let scene = try Scene()
        scene.bus.devices = [("near1", 1)]
        scene.learn()
        scene.listener.accepted[0].close()
        scene.run(.seconds(1))
        #expect(scene.monitor.networks.interfaces.isEmpty)
        scene.learn()
        scene.run(MeteredMonitor.checkInterval)
        #expect(scene.monitor.networks.interfaces == ["near1"] && scene.bus.clientCount == 1)
    }

    @Test(arguments: [
        "REJECTED\r\n", "GET / HTTP/1.1\r\n",
        "OK x\r\n\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}",
    ])
    func nonsenseEndsTheConnection(_ text: String) throws {
        let scene = try Scene()
        scene.bus.isSilent = true
        var isKnown = false
        scene.perform { scene.monitor.whenKnown { isKnown = true } }
        scene.run(.milliseconds(50)) { !scene.listener.accepted.isEmpty }
        scene.listener.accepted[0].send(text)
        scene.run(.milliseconds(50)) { isKnown }
        #expect(isKnown && scene.monitor.networks == MeteredNetworks())
    }

    @Test func unusedConnectionIsClosed() throws {
        let scene = try Scene()
        scene.learn()
        scene.run(MeteredMonitor.idleTimeout - .seconds(1))
        #expect(scene.bus.clientCount == 1)
        scene.run(MeteredMonitor.checkInterval + .seconds(2))
        #expect(scene.bus.clientCount == 0 && scene.loop.watchedCount == 0)
        // An observer holds it.
        let observer = Observer()
        scene.perform { PathMonitor.shared(on: scene.loop).add(observer) }
        scene.learn()
        scene.run(MeteredMonitor.idleTimeout * 5)
        #expect(scene.bus.clientCount == 1)
        scene.perform { PathMonitor.shared(on: scene.loop).remove(observer) }
    }

    @Test func manyDevicesAreAskedAFewAtATime() throws {
        let scene = try Scene()
        scene.bus.devices = (0..<600).map { ("near\($0)", $0 % 2 == 0 ? 1 : 2) }
        scene.learn()
        #expect(scene.monitor.networks.interfaces.count == MeteredDevices.deviceLimit / 2)
    }

    @Test func connectionWaitsForTheFirstAnswerIfCostMatters() throws {
        let scene = try Scene()
        let server = SocketAddress.ipv4(address: 0x0A01_0001, port: 0)
        scene.network.routes[server] = [Route(interface: 1)]
        scene.bus.devices = [("near1", 3)]
        var path = PathOptions()
        path.forbidden = .expensive
        var failure: TransportFailure?
        scene.perform {
            _ = ConnectAttempt(
                .address(.ipv4(address: 0x0A01_0001, port: 9)), on: scene.loop, path: path, timeout: .seconds(5)
            ) { result in
                if case .failure(let error) = result { failure = error }
            }
        }
        scene.run(.seconds(1)) { failure != nil }
        #expect(failure == .offline(.forbidden(.expensive)))
    }
}

@Suite("Whether NetworkManager calls the machine metered")
struct MeteredMachineTests {
    /// A bus at real sockets, on a thread of its own until `stop`.
    private final class BusThread: @unchecked Sendable {  // The host is used by the thread alone.
        let address = SocketAddress.unix(path: "@sluice-bus-\(UInt64.random(in: 0...(.max)))")
        private let host: ScriptedHost
        private let listener: ScriptedListener
        private let isOver = Atomic(false)

        init(machine: UInt32, isSilent: Bool) throws {
            self.host = ScriptedHost(on: try LinuxSystem())
            self.listener = try self.host.listen(at: self.address)
            SystemThread.start(named: "bus") {
                let bus = ScriptedBus(self.listener)
                (bus.machine, bus.isSilent) = (machine, isSilent)
                while !self.isOver.load(ordering: .acquiring) {
                    self.host.turn()
                    bus.step()
                }
                self.host.close()
            }
        }

        func stop() {
            self.isOver.store(true, ordering: .releasing)
            self.host.system.wake()
        }
    }

    @Test(arguments: [(UInt32(0), false), (1, true), (2, false), (3, true), (4, false)])
    func machineIsAskedWithoutALoop(_ value: UInt32, _ isMetered: Bool) throws {
        let bus = try BusThread(machine: value, isSilent: false)
        #expect(MeteredMonitor.isMachineMetered(at: bus.address, patience: .seconds(120)) == isMetered)
        bus.stop()
    }

    /// No timer of the monitor is waited for, of which the longest is that of `checkInterval`.
    @Test func silentOrMissingBusIsNotWaitedFor() throws {
        let bus = try BusThread(machine: 1, isSilent: true)
        let duration = ContinuousClock().measure {
            #expect(!MeteredMonitor.isMachineMetered(at: bus.address))
            #expect(!MeteredMonitor.isMachineMetered(at: .unix(path: "@sluice-no-bus")))
        }
        #expect(duration < MeteredMonitor.checkInterval / 2)
        bus.stop()
    }
}
