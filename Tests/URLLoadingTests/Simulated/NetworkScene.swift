import Foundation
import SimulatedNetwork
import StreamTransport
import TestSupport
import Testing
import URLLoading

/// A session and a server on the simulated network, whose ways to each other the test takes away and gives back.
final class NetworkScene {
    let network = SimulatedNetwork(seed: 1)
    let queue = ManualQueue()
    let log = NetworkLog()
    let session: URLSession
    let url: URL
    let webSocketURL: URL
    /// On it NetworkManager knows the interface `near1`.
    let bus: ScriptedBus
    private let loop: Loop
    private let host: ScriptedHost
    private let listener: ScriptedListener
    private let kernel: ScriptedListener
    let server: SocketAddress

    /// - Parameters:
    ///   - hasRoute: whether there is a route to the server.
    ///   - isProxy: whether the server is the session's proxy.
    ///   - change: to the configuration, with which tasks wait for connectivity.
    init(hasRoute: Bool = true, isProxy: Bool = false, _ change: (URLSessionConfiguration) -> Void = { _ in }) throws {
        let system = self.network.makeSystem()
        let loop = Loop(system: system)
        system.drive { [weak loop] in loop?.turn() }
        let hostSystem = self.network.makeSystem()
        let host = ScriptedHost(on: hostSystem)
        hostSystem.drive { [weak host] in host?.turn() }
        self.loop = loop
        self.host = host
        self.listener = try host.listen(at: .ipv4(address: 0x0A01_0001, port: 0))
        self.kernel = try host.listen(at: SimulatedSystem.pathNotifications)
        self.bus = ScriptedBus(try host.listen(at: .unix(path: "@bus")))
        self.network.systemBus = .unix(path: "@bus")
        self.server = self.listener.address
        self.network.names = ["server.test": .addresses([self.server])]
        self.url = try #require(URL(string: "http://server.test:\(self.server.port ?? 0)/"))
        self.webSocketURL = try #require(URL(string: "ws://server.test:\(self.server.port ?? 0)/"))
        let configuration = URLSessionConfiguration.ephemeral
        configuration.connectionProxyDictionary =
            isProxy ? ["HTTPEnable": 1, "HTTPProxy": "10.1.0.1", "HTTPPort": Int(self.server.port ?? 0)] : [:]
        configuration.waitsForConnectivity = true
        // Without a delegate method for it, a cache is asked on another thread.
        configuration.urlCache = nil
        configuration.loop = loop
        change(configuration)
        self.session = URLSession(configuration: configuration, delegate: self.log, delegateQueue: self.queue)
        if !hasRoute { self.setRoute(false) }
    }

    // MARK: Tasks

    /// Begins a data task.
    func load(_ request: URLRequest? = nil) {
        self.session.dataTask(with: request ?? URLRequest(url: self.url)).resume()
    }

    /// Begins a stream task.
    func openStream() {
        self.session.streamTask(withHostName: "server.test", port: Int(self.server.port ?? 0)).resume()
    }

    /// Begins a data task, a stream task and a WebSocket task.
    func beginTasksOfAllKinds() -> [URLSessionTask] {
        let tasks: [URLSessionTask] = [
            self.session.dataTask(with: self.url),
            self.session.streamTask(withHostName: "server.test", port: Int(self.server.port ?? 0)),
            self.session.webSocketTask(with: self.webSocketURL),
        ]
        for task in tasks { task.resume() }
        return tasks
    }

    /// Runs until so many tasks wait.
    func awaitWaits(_ count: Int = 1) -> Bool { self.run { self.log.waits == count } }

    /// Runs until so many tasks have ended.
    /// - Parameter limit: in virtual time.
    func awaitEnds(_ count: Int = 1, atMost limit: Duration = .seconds(1)) -> Bool {
        self.run(atMost: limit) { self.log.errors.count == count }
    }

    /// Runs until the server has received bytes.
    /// - Parameter limit: in virtual time.
    func awaitRequest(atMost limit: Duration = .seconds(1)) -> Bool {
        self.run(atMost: limit) { self.received.first?.isEmpty == false }
    }

    // MARK: The network

    /// The bytes of all connections to the server.
    var received: [String] { self.listener.accepted.map { String(decoding: $0.received, as: UTF8.self) } }

    /// Whether there is a route to the server. The kernel's notification follows.
    func setRoute(_ exists: Bool) {
        self.network.connectScripts[self.server] = exists ? nil : .noRoute
        self.notify()
    }

    /// NetworkManager's property `Metered` of the only interface. Its notification follows.
    func setMetered(_ value: UInt32) {
        self.bus.devices = [("near1", value)]
        self.bus.notify()
    }

    /// The class of the only interface.
    func setClass(_ classes: InterfaceClasses) {
        self.network.interfaceClasses[1] = classes
        if case .ipv4(let address, _) = self.server {
            self.network.routes[.ipv4(address: address, port: 0)] = [Route(interface: 1)]
        }
        self.notify()
    }

    /// Sends RTM_NEWROUTE without attributes.
    private func notify() {
        let message: [UInt8] = [
            0x1C, 0, 0, 0, 0x18, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 254, 0, 0, 1, 0, 0, 0, 0,
        ]
        for peer in self.kernel.accepted where !peer.isClosed { peer.send(message) }
    }

    func answerAll(_ text: String = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok") {
        self.answerAll(Array(text.utf8))
    }

    func answerAll(_ bytes: [UInt8]) {
        for peer in self.listener.accepted where !peer.isClosed { peer.send(bytes) }
    }

    func resetAll() {
        for peer in self.listener.accepted where !peer.isClosed { peer.reset() }
    }

    /// - Parameter limit: in virtual time.
    @discardableResult
    func run(atMost limit: Duration = .seconds(1), until condition: () -> Bool = { false }) -> Bool {
        let outcome = self.network.run(
            until: {
                self.bus.step()
                self.queue.runOperations()
                return condition()
            }, atMost: limit)
        self.queue.runOperations()
        return outcome == .conditionMet || condition()
    }

    func end() {
        self.session.invalidateAndCancel()
        self.run(atMost: .seconds(5))
        #expect(PathMonitor.shared(on: self.loop).observerCount == 0)
        self.host.close()
        #expect(self.network.misuses.isEmpty)
    }
}

/// The delegate of the scene, on the test's thread.
final class NetworkLog: NSObject, URLSessionDataDelegate, URLSessionStreamDelegate, URLSessionWebSocketDelegate,
    @unchecked Sendable
{
    private(set) var waits = 0
    private(set) var betterRoutes = 0
    private(set) var opened = 0
    private(set) var data = Data()
    private(set) var errors: [URLError?] = []
    private(set) var metrics: [URLSessionTaskTransactionMetrics] = []

    func urlSession(_ session: URLSession, taskIsWaitingForConnectivity task: URLSessionTask) { self.waits += 1 }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        completionHandler(.allow)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        completionHandler(request)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) { self.data += data }

    func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
        self.metrics += metrics.transactionMetrics
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        self.errors.append(error as? URLError)
    }

    func urlSession(_ session: URLSession, betterRouteDiscoveredFor streamTask: URLSessionStreamTask) {
        self.betterRoutes += 1
    }

    func urlSession(_ session: URLSession, webSocketTask: URLSessionWebSocketTask, didOpenWithProtocol name: String?) {
        self.opened += 1
    }
}
