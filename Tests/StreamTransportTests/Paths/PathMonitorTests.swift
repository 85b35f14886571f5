import SimulatedNetwork
import StreamTransport
import TestSupport
import Testing

@Suite("Changes of routes to an address")
struct PathMonitorTests {
    private static let peer = SocketAddress.ipv4(address: 0xC000_0201, port: 80)
    private static let own = SocketAddress.ipv4(address: 0xC612_0001, port: 0)
    private static let other = SocketAddress.ipv4(address: 0xC612_0101, port: 0)
    /// RTM_NEWROUTE without attributes.
    private static let change: [UInt8] = [
        0x1C, 0, 0, 0, 0x18, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 254, 0, 0, 1, 0, 0, 0, 0,
    ]

    private final class Observer: PathObserver {
        var calls: [MonotonicInstant] = []
        let network: SimulatedNetwork

        init(_ network: SimulatedNetwork) { self.network = network }

        func pathsChanged() { self.calls.append(self.network.now) }
    }

    /// A loop on the simulated network, and the kernel that sends notifications.
    private final class Scene {
        let testbed = TransportTestbed(.simulation)
        let network: SimulatedNetwork
        let loop: Loop
        let kernel: ScriptedListener
        private let host: ScriptedHost

        init(notifies: Bool = true) throws {
            self.network = try #require(self.testbed.network)
            self.loop = try self.testbed.makeLoop()
            self.host = try self.testbed.makeHost()
            self.kernel = try self.host.listen(at: SimulatedSystem.pathNotifications)
            if !notifies { self.kernel.close() }
        }

        func perform(_ body: @escaping () -> Void) { self.testbed.perform(on: self.loop, body) }

        func run(_ duration: Duration) { _ = self.testbed.run(until: { false }, atMost: duration) }
    }

    @Test func notificationsOfAGroupAreOneCall() throws {
        let scene = try Scene()
        let observer = Observer(scene.network)
        scene.perform { PathMonitor.shared(on: scene.loop).add(observer) }
        // What happened before the notifications began may have been missed.
        scene.run(.milliseconds(200))
        #expect(observer.calls.count == 1)
        let start = scene.network.now
        for _ in 0..<20 {
            scene.kernel.accepted[0].send(PathMonitorTests.change)
            scene.run(.milliseconds(1))
        }
        scene.run(.seconds(1))
        #expect(observer.calls.count == 2)
        #expect(start.duration(to: try #require(observer.calls.last)) < .milliseconds(60))
        scene.perform { PathMonitor.shared(on: scene.loop).remove(observer) }
        #expect(scene.loop.watchedCount == 0)
        scene.run(.seconds(1))
        #expect(scene.kernel.accepted[0].sawEnd && observer.calls.count == 2)
    }

    @Test func withoutNotificationsObserversAreCalledAtIntervals() throws {
        let scene = try Scene(notifies: false)
        let observer = Observer(scene.network)
        scene.perform { PathMonitor.shared(on: scene.loop).add(observer) }
        scene.run(.seconds(11))
        #expect(observer.calls.count == 5)
        scene.perform { PathMonitor.shared(on: scene.loop).remove(observer) }
        scene.run(.seconds(5))
        #expect(observer.calls.count == 5 && scene.loop.watchedCount == 0)
    }

    @Test func notificationsThatEndAreAskedForAgain() throws {
        let scene = try Scene()
        let observer = Observer(scene.network)
        scene.perform { PathMonitor.shared(on: scene.loop).add(observer) }
        scene.run(.milliseconds(200))
        scene.kernel.accepted[0].close()
        scene.run(.seconds(3))
        #expect(scene.kernel.accepted.count == 2)
        let calls = observer.calls.count
        scene.kernel.accepted[1].send(PathMonitorTests.change)
        scene.run(.seconds(1))
        #expect(observer.calls.count == calls + 1)
        scene.perform { PathMonitor.shared(on: scene.loop).remove(observer) }
    }

    /// RTM_NEWLINK of interface 2, as often as nothing changes.
    private static let link: [UInt8] = [
        0x20, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        0, 0, 1, 0, 2, 0, 0, 0, 0x43, 0x10, 1, 0, 0, 0, 0, 0,
    ]

    @Test func lostNotificationsMayHaveBeenChanges() throws {
        let scene = try Scene()
        let observer = Observer(scene.network)
        scene.perform { PathMonitor.shared(on: scene.loop).add(observer) }
        scene.run(.milliseconds(200))
        func calls(after message: [UInt8]) -> Int {
            let before = observer.calls.count
            scene.kernel.accepted[0].send(message)
            scene.run(.seconds(1))
            return observer.calls.count - before
        }
        #expect(calls(after: PathMonitorTests.link) == 1 && calls(after: PathMonitorTests.link) == 0)
        scene.network.losesPathNotifications = true
        #expect(calls(after: PathMonitorTests.link) == 1)
        // What was known of the interface is known no more.
        #expect(calls(after: PathMonitorTests.link) == 1 && calls(after: PathMonitorTests.link) == 0)
        #expect(scene.kernel.accepted.count == 1)
        scene.perform { PathMonitor.shared(on: scene.loop).remove(observer) }
    }

    @Test func aBetterRouteIsReportedOnce() throws {
        let scene = try Scene()
        let place = PathMonitorTests.peer.withoutPort
        scene.network.routes[place] = [Route(interface: 2, source: PathMonitorTests.own)]
        var reports = 0
        var watch: RouteWatch?
        scene.perform {
            watch = RouteWatch(
                of: PathMonitorTests.own, to: PathMonitorTests.peer, forbidding: .cellular, on: scene.loop
            ) {
                reports += 1
            }
        }
        func change(to routes: [Route]) {
            scene.network.routes[place] = routes
            scene.kernel.accepted[0].send(PathMonitorTests.change)
            scene.run(.milliseconds(200))
        }
        scene.run(.milliseconds(200))
        change(to: [Route(interface: 2, source: PathMonitorTests.own)])
        #expect(reports == 0)
        change(to: [Route(interface: 3, source: PathMonitorTests.other)])
        change(to: [Route(interface: 3, source: PathMonitorTests.other)])
        #expect(reports == 1)
        // No route, and the connection's own route.
        change(to: [])
        change(to: [Route(interface: 2, source: PathMonitorTests.own)])
        #expect(reports == 1)
        // Another address of the same interface.
        change(to: [Route(interface: 2, source: PathMonitorTests.other)])
        #expect(reports == 2)
        scene.network.interfaceClasses[4] = [.cellular, .expensive]
        change(to: [Route(interface: 4, source: PathMonitorTests.other)])
        #expect(reports == 2)
        scene.perform { watch?.cancel() }
        #expect(scene.loop.watchedCount == 0 && PathMonitor.shared(on: scene.loop).observerCount == 0)
    }

    @Test func aConnectionWithinTheMachineIsNotWatched() throws {
        let scene = try Scene()
        let pairs: [(SocketAddress, SocketAddress)] = [
            (.ipv4(address: 0x7F00_0001, port: 1), .ipv4(address: 0x7F00_0002, port: 2)),
            (.unix(path: ""), .unix(path: "/a")), (PathMonitorTests.own, PathMonitorTests.own),
        ]
        for (local, peer) in pairs {
            #expect(RouteWatch(of: local, to: peer, forbidding: [], on: scene.loop) {} == nil)
        }
    }

    // MARK: Which interface

    @Test func forbiddenInterfacesAreAvoided() throws {
        let scene = try Scene()
        let place = PathMonitorTests.peer.withoutPort
        scene.network.interfaceClasses = [2: [.cellular, .expensive], 3: .constrained]
        scene.network.routes[place] = [Route(interface: 2, source: PathMonitorTests.own)]
        func choice(_ forbidden: InterfaceClasses) -> PathChoice {
            PathChoice(to: PathMonitorTests.peer, forbidding: forbidden, on: scene.loop)
        }
        #expect(choice([]) == .any && choice(.constrained) == .any)
        #expect(choice(.cellular) == .refused(.cellular) && choice([.expensive]) == .refused(.expensive))
        scene.network.routes[place]?.append(Route(interface: 3, source: PathMonitorTests.other))
        #expect(choice(.cellular) == .through(3))
        #expect(choice([.cellular, .constrained]) == .refused(.cellular))
        scene.network.unusableInterfaces = [3]
        #expect(choice(.cellular) == .refused(.cellular))
        scene.network.routes[place] = []
        #expect(choice(.cellular) == .noRoute(.networkUnreachable))
        #expect(PathChoice(to: .unix(path: "/a"), forbidding: .cellular, on: scene.loop) == .any)
    }
}

extension SocketAddress {
    fileprivate var withoutPort: SocketAddress {
        if case .ipv4(let address, _) = self { .ipv4(address: address, port: 0) } else { self }
    }
}
