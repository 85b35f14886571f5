import Foundation
import HTTPTransport
import NIOCore
import NIOPosix
import Synchronization
import TLSEngine

/// An HTTP/1.1 server within a test: answers by path as it is told, and remembers all it was asked.
final class WebServer: Sendable {
    typealias Script = @Sendable (ReceivedRequest) -> Answer

    struct Route: Sendable {
        /// Answers when the head is there, before the body.
        var isEarly = false
        var script: Script
    }

    struct State {
        var routes: [String: Route] = [:]
        var requests: [ReceivedRequest] = []
        var arrivals: [(count: Int, gate: Gate)] = []
        var connections = 0
        /// By connection: its other end is gone.
        var ended: [Int: Gate] = [:]
        var channels: [Int: any Channel] = [:]
        var facts: [Int: TLSMetadata] = [:]
        var bytesReceived = 0
    }

    let port: Int
    let isSecure: Bool
    private let listener: any Channel
    private let state: Shared

    /// What the connections share with their server, so that they do not keep it alive.
    final class Shared: Sendable {
        private let state = Mutex(State())
        func with<R>(_ body: (inout sending State) -> sending R) -> sending R { self.state.withLock(body) }
    }

    /// - Parameter socketPath: of a Unix socket to listen at; `nil` for a port of 127.0.0.1.
    init(tls: TLSContext? = nil, at socketPath: String? = nil, _ answers: [String: Answer] = [:]) async throws {
        let shared = Shared()
        shared.with { state in
            for (path, answer) in answers { state.routes[path] = Route { _ in answer } }
        }
        self.state = shared
        self.isSecure = tls != nil
        let bootstrap = ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .serverChannelOption(.backlog, value: 1024)
            .childChannelOption(.allowRemoteHalfClosure, value: true)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    if let tls { try channel.pipeline.syncOperations.addHandler(SecureHandler(tls)) }
                    try channel.pipeline.syncOperations.addHandler(WebConnection(shared, channel))
                }
            }
        self.listener =
            if let socketPath {
                try await bootstrap.bind(unixDomainSocketPath: socketPath).get()
            } else {
                try await bootstrap.bind(host: "127.0.0.1", port: 0).get()
            }
        self.port = self.listener.localAddress?.port ?? 0
    }

    deinit { self.stop() }

    /// Refuses who comes from now on, and drops everybody.
    func stop() {
        self.listener.close(promise: nil)
        for channel in self.state.with({ Array($0.channels.values) }) { channel.close(promise: nil) }
    }

    /// Closes every connection, and goes on to take new ones.
    func dropConnections() {
        for channel in self.state.with({ Array($0.channels.values) }) { channel.close(promise: nil) }
    }

    // MARK: Addresses

    var root: String { "\(self.isSecure ? "https" : "http")://127.0.0.1:\(self.port)" }

    func url(_ path: String = "/") -> URL { URL(string: self.root + path) ?? URL(filePath: "/") }

    // MARK: What it answers

    /// Answers to a path; without one, 404.
    func on(_ path: String, _ answer: Answer) { self.route(path, Route { _ in answer }) }
    func on(_ path: String, _ script: @escaping Script) { self.route(path, Route(script: script)) }
    /// Answers when the head is there, whatever becomes of the body.
    func onHead(_ path: String, _ script: @escaping Script) { self.route(path, Route(isEarly: true, script: script)) }

    /// One answer after the other; the last again and again.
    func on(_ path: String, oneByOne answers: [Answer]) {
        let count = Mutex(0)
        self.on(path) { _ in
            let turn = count.withLock { count in
                defer { count += 1 }
                return count
            }
            return answers[min(turn, answers.count - 1)]
        }
    }

    private func route(_ path: String, _ route: Route) { self.state.with { $0.routes[path] = route } }

    // MARK: What it heard

    var requests: [ReceivedRequest] { self.state.with { $0.requests } }
    func requests(_ path: String) -> [ReceivedRequest] { self.requests.filter { $0.path == path } }
    /// How many came, in all.
    var connections: Int { self.state.with { $0.connections } }
    var openConnections: Int { self.state.with { $0.channels.count } }
    var bytesReceived: Int { self.state.with { $0.bytesReceived } }
    func facts(_ connection: Int) -> TLSMetadata? { self.state.with { $0.facts[connection] } }

    /// Waits until so many requests have come.
    @discardableResult
    func hasHeard(_ count: Int) async -> Bool {
        let gate = Gate()
        self.state.with { state in
            if state.requests.count >= count { gate.open() } else { state.arrivals.append((count, gate)) }
        }
        return await gate.pass()
    }

    /// Waits until the connection's other end is gone.
    func hasLost(_ connection: Int) async -> Bool {
        await self.state.with { state -> Gate in
            if let gate = state.ended[connection] { return gate }
            let gate = Gate()
            state.ended[connection] = gate
            return gate
        }.pass()
    }
}
