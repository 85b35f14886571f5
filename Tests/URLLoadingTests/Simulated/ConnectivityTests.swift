import Foundation
import SimulatedNetwork
import StreamTransport
import Testing
import URLLoading

@Suite("Changes of connectivity")
struct ConnectivityTests {
    // MARK: Offline

    @Test func offlineTaskFailsWithoutANetwork() throws {
        let scene = try NetworkScene(hasRoute: false) { $0.waitsForConnectivity = false }
        scene.load()
        #expect(scene.awaitEnds())
        let error = try #require(scene.log.errors.first ?? nil)
        #expect(error.code == .notConnectedToInternet && error.failingURL == scene.url && scene.log.waits == 0)
        #expect((error.userInfo[NSUnderlyingErrorKey] as? POSIXError)?.code == .ENETUNREACH)
        #expect(error.networkUnavailableReason == nil)
        scene.end()
    }

    @Test func offlineNameServersAreNotConnectedToTheInternet() throws {
        let scene = try NetworkScene {
            $0.waitsForConnectivity = false
            $0.resolve = { _, _, answer in answer(.failure(.noRoute)) }
        }
        scene.load()
        #expect(scene.awaitEnds())
        #expect(scene.log.errors.first??.code == .notConnectedToInternet)
        scene.end()
    }

    // MARK: Waiting

    @Test(arguments: [false, true])
    func waitingTaskConnectsWhenARouteAppears(_ hasBodyStream: Bool) throws {
        let scene = try NetworkScene(hasRoute: false)
        var request = URLRequest(url: scene.url)
        if hasBodyStream {
            request.httpMethod = "POST"
            // It can be read once: the task must not ask for another.
            request.httpBodyStream = InputStream(data: Data("body".utf8))
        }
        scene.load(request)
        #expect(scene.awaitWaits())
        // Longer than the request's timeout, which does not run; a change that does not help is not reported again.
        for _ in 0..<5 {
            scene.setRoute(false)
            scene.run(atMost: .seconds(60))
        }
        #expect(scene.log.waits == 1 && scene.log.errors.isEmpty && scene.received.isEmpty)
        scene.setRoute(true)
        #expect(scene.awaitRequest())
        guard !hasBodyStream else { return scene.end() }
        scene.answerAll()
        #expect(scene.awaitEnds())
        #expect(scene.log.data == Data("ok".utf8) && scene.log.errors == [nil] && scene.log.waits == 1)
        let dates = try #require(scene.log.metrics.first)
        #expect(scene.log.metrics.count == 1 && dates.connectEndDate != nil && dates.responseEndDate != nil)
        scene.end()
    }

    @Test func allTasksOfAHostWaitAndConnect() throws {
        let scene = try NetworkScene(hasRoute: false)
        for _ in 0..<20 { scene.load() }
        #expect(scene.awaitWaits(20))
        scene.setRoute(true)
        // The limit of connections to a host.
        #expect(scene.run { scene.received.filter { !$0.isEmpty }.count == 6 })
        scene.end()
        #expect(scene.log.errors.count == 20)
    }

    @Test func resourceTimeoutEndsTheWait() throws {
        let scene = try NetworkScene(hasRoute: false) { $0.timeoutIntervalForResource = 0.2 }
        scene.openStream()
        #expect(scene.awaitEnds(atMost: .seconds(10)))
        #expect(scene.log.waits == 1 && scene.log.errors.first??.code == .timedOut)
        scene.end()
    }

    @Test func waitingTaskIsCancelled() throws {
        let scene = try NetworkScene(hasRoute: false)
        let tasks = scene.beginTasksOfAllKinds()
        #expect(scene.awaitWaits(3))
        for task in tasks { task.cancel() }
        #expect(scene.awaitEnds(3))
        #expect(scene.log.errors.allSatisfy { $0?.code == .cancelled })
        scene.setRoute(true)
        scene.run()
        #expect(scene.received.isEmpty)
        scene.end()
    }

    @Test func suspendedTaskConnectsOnlyWhenResumed() throws {
        let scene = try NetworkScene(hasRoute: false)
        let tasks = scene.beginTasksOfAllKinds()
        #expect(scene.awaitWaits(3))
        for task in tasks { task.suspend() }
        scene.run()
        scene.setRoute(true)
        scene.run(atMost: .seconds(10))
        #expect(scene.received.isEmpty)
        for task in tasks { task.resume() }
        #expect(scene.run { scene.received.count == 3 })
        #expect(scene.log.waits == 3)
        scene.end()
    }

    @Test func waitingTasksOfAllKindsConnect() throws {
        let scene = try NetworkScene(hasRoute: false)
        _ = scene.beginTasksOfAllKinds()
        #expect(scene.awaitWaits(3))
        scene.run(atMost: .seconds(300))
        scene.setRoute(true)
        #expect(
            scene.run { scene.received.contains { $0.contains("Upgrade: websocket") } && scene.received.count == 3 })
        #expect(scene.log.errors.isEmpty && scene.log.waits == 3)
        scene.end()
    }

    /// The way to the proxy counts, and nothing is known of the proxy itself.
    @Test func waitingTaskConnectsThroughItsProxy() throws {
        let scene = try NetworkScene(hasRoute: false, isProxy: true)
        scene.load(URLRequest(url: try #require(URL(string: "http://elsewhere.test/"))))
        scene.session.webSocketTask(with: try #require(URL(string: "ws://elsewhere.test/"))).resume()
        #expect(scene.awaitWaits(2))
        scene.run(atMost: .seconds(60))
        scene.setRoute(true)
        #expect(scene.run { scene.received.filter { !$0.isEmpty }.count == 2 })
        #expect(scene.received.contains { $0.hasPrefix("GET http://elsewhere.test/ ") })
        #expect(scene.received.contains { $0.hasPrefix("CONNECT elsewhere.test:80 ") } && scene.log.errors.isEmpty)
        scene.end()
    }

    // MARK: Failures that are not waited after

    /// A server that is there and refuses has nothing to do with this machine's networks.
    @Test func refusalIsNotWaitedAfter() throws {
        let scene = try NetworkScene()
        scene.load(URLRequest(url: try #require(URL(string: "http://10.1.0.1:1/"))))
        #expect(scene.awaitEnds())
        #expect(scene.log.errors.first??.code == .cannotConnectToHost && scene.log.waits == 0)
        scene.end()
    }

    @Test func lostConnectionIsNotWaitedAfter() throws {
        let scene = try NetworkScene()
        scene.load()
        #expect(scene.awaitRequest())
        scene.setRoute(false)
        scene.resetAll()
        #expect(scene.awaitEnds())
        #expect(scene.log.errors.first??.code == .networkConnectionLost && scene.log.waits == 0)
        scene.end()
    }

    @Test func redirectAfterAConnectionIsNotWaitedFor() throws {
        let scene = try NetworkScene()
        scene.load()
        #expect(scene.awaitRequest())
        scene.network.connectScripts[.ipv4(address: 0x0A01_0009, port: 80)] = .noRoute
        scene.answerAll("HTTP/1.1 302 Found\r\nLocation: http://10.1.0.9/\r\nContent-Length: 0\r\n\r\n")
        #expect(scene.awaitEnds())
        #expect(scene.log.errors.first??.code == .notConnectedToInternet && scene.log.waits == 0)
        scene.end()
    }

    // MARK: Name servers

    /// A scene in which the name server had no route, now has one, and does not answer yet.
    private static func sceneWithUnreadyNameServer() throws -> NetworkScene {
        let scene = try NetworkScene()
        scene.network.names["server.test"] = .failure(.noRoute)
        scene.load()
        #expect(scene.awaitWaits())
        scene.network.names["server.test"] = .failure(.temporarilyUnavailable)
        scene.setRoute(true)
        return scene
    }

    /// resolv.conf is often written after the route is there.
    @Test func nameServersMayFollowTheRoute() throws {
        let scene = try Self.sceneWithUnreadyNameServer()
        scene.run(atMost: .seconds(3))
        #expect(scene.log.errors.isEmpty)
        scene.network.names["server.test"] = .addresses([scene.server])
        #expect(scene.awaitRequest(atMost: .seconds(3)))
        scene.end()
    }

    @Test func nameServersThatDoNotFollowFailTheTask() throws {
        let scene = try Self.sceneWithUnreadyNameServer()
        #expect(scene.awaitEnds(atMost: .seconds(10)))
        #expect(scene.log.errors.first??.code == .dnsLookupFailed)
        scene.end()
    }

    // MARK: Classes of networks

    typealias Setting = (
        classes: InterfaceClasses, change: @Sendable (URLSessionConfiguration) -> Void,
        reason: URLError.NetworkUnavailableReason
    )
    static let settings: [Setting] = [
        ([.cellular, .expensive], { $0.allowsCellularAccess = false }, .cellular),
        ([.cellular, .expensive], { $0.allowsExpensiveNetworkAccess = false }, .expensive),
        (.constrained, { $0.allowsConstrainedNetworkAccess = false }, .constrained),
    ]

    @Test(arguments: Self.settings.indices)
    func forbiddenNetworkIsTheReason(_ index: Int) throws {
        let setting = Self.settings[index]
        let scene = try NetworkScene {
            $0.waitsForConnectivity = false
            setting.change($0)
        }
        scene.setClass(setting.classes)
        _ = scene.beginTasksOfAllKinds()
        #expect(scene.awaitEnds(3))
        for error in scene.log.errors {
            #expect(error?.code == .notConnectedToInternet && error?.networkUnavailableReason == setting.reason)
        }
        #expect(scene.received.isEmpty)
        scene.end()
    }

    @Test(arguments: 0..<3)
    func stricterSettingOfARequestCounts(_ index: Int) throws {
        let scene = try NetworkScene { $0.waitsForConnectivity = false }
        let classes = Self.settings[index].classes
        scene.setClass(classes)
        // One that may use it opens a connection that the other may not.
        scene.load()
        #expect(scene.awaitRequest())
        scene.answerAll()
        #expect(scene.awaitEnds() && scene.log.errors == [nil])
        let metrics = try #require(scene.log.metrics.first)
        #expect(
            metrics.isCellular == classes.contains(.cellular) && metrics.isExpensive == classes.contains(.expensive))
        #expect(metrics.isConstrained == classes.contains(.constrained))
        var request = URLRequest(url: scene.url)
        request.allowsCellularAccess = index != 0
        request.allowsExpensiveNetworkAccess = index != 1
        request.allowsConstrainedNetworkAccess = index != 2
        scene.load(request)
        #expect(scene.awaitEnds(2))
        #expect((scene.log.errors.last ?? nil)?.networkUnavailableReason == Self.settings[index].reason)
        #expect(scene.received.count == 1)
        scene.end()
    }

    @Test func taskWaitsForANetworkThatItMayUse() throws {
        let scene = try NetworkScene { $0.allowsCellularAccess = false }
        scene.setClass([.cellular, .expensive])
        scene.load()
        #expect(scene.awaitWaits())
        scene.setClass([])
        #expect(scene.awaitRequest())
        scene.end()
    }

    // MARK: Networks that NetworkManager calls metered

    @Test func taskWaitsUntilItsNetworkIsNotMetered() throws {
        let scene = try NetworkScene { $0.allowsExpensiveNetworkAccess = false }
        scene.setClass([])
        scene.setMetered(1)
        _ = scene.beginTasksOfAllKinds()
        #expect(scene.awaitWaits(3))
        scene.run(atMost: .seconds(300))
        #expect(scene.received.isEmpty)
        scene.setMetered(2)
        #expect(scene.run { scene.received.count == 3 })
        scene.end()
    }

    @Test func networkMayBecomeMeteredWhileATaskWaits() throws {
        let scene = try NetworkScene(hasRoute: false) { $0.allowsExpensiveNetworkAccess = false }
        scene.setMetered(2)
        scene.load()
        #expect(scene.awaitWaits())
        scene.setMetered(3)
        scene.run(atMost: .seconds(3))
        scene.setClass([])
        scene.setRoute(true)
        scene.run(atMost: .seconds(60))
        #expect(scene.received.isEmpty && scene.log.errors.isEmpty)
        scene.setMetered(4)
        #expect(scene.awaitRequest())
        scene.end()
    }

    @Test func meteredNetworkIsReportedWhereItMatters() throws {
        let scene = try NetworkScene { $0.waitsForConnectivity = false }
        scene.setClass([])
        scene.setMetered(1)
        var request = URLRequest(url: scene.url)
        request.allowsExpensiveNetworkAccess = false
        scene.load(request)
        #expect(scene.awaitEnds() && scene.received.isEmpty)
        #expect((scene.log.errors.last ?? nil)?.networkUnavailableReason == .expensive)
        scene.load()
        #expect(scene.awaitRequest())
        scene.answerAll()
        #expect(scene.awaitEnds(2))
        let metrics = try #require(scene.log.metrics.last)
        #expect(metrics.isExpensive && !metrics.isCellular && !metrics.isConstrained)
        scene.end()
    }

    // MARK: Better routes

    @Test func betterRouteOfAStreamIsReported() throws {
        let scene = try NetworkScene()
        scene.setClass([])
        scene.openStream()
        #expect(scene.run { scene.received.count == 1 })
        scene.run()
        #expect(scene.log.betterRoutes == 0)
        scene.network.routes[.ipv4(address: 0x0A01_0001, port: 0)] = [
            Route(interface: 2, source: .ipv4(address: 0x0A05_0005, port: 0))
        ]
        scene.setRoute(true)
        #expect(scene.run { scene.log.betterRoutes == 1 })
        scene.run()
        #expect(scene.log.betterRoutes == 1 && scene.log.errors.isEmpty)
        scene.end()
    }
}
