import Foundation
import StreamTransport
import Synchronization
import TLSEngine

/// An HTTP/1.1 server within a test: answers by path as configured, and records all requests.
final class WebServer: Sendable {
    typealias Script = @Sendable (ReceivedRequest) -> Answer

    struct Route: Sendable {
        /// Whether it answers after the head, before the body.
        var isEarly = false
        var script: Script
    }

    struct State {
        var routes: [String: Route] = [:]
        var requests: [ReceivedRequest] = []
        var arrivals: [(count: Int, gate: Gate)] = []
        var connections = 0
        /// By connection: opened when the client's end is closed.
        var ended: [Int: Gate] = [:]
        var open: [Int: WebConnection] = [:]
        var metadata: [Int: TLSMetadata] = [:]
        var bytesReceived = 0
    }

    let port: Int
    let isSecure: Bool
    private let door: Acceptor
    private let state: Shared

    /// The state shared by the connections and their server, so that they do not retain it.
    final class Shared: Sendable {
        private let state = Mutex(State())
        func with<R>(_ body: (inout sending State) -> sending R) -> sending R { self.state.withLock(body) }
    }

    /// - Parameters:
    ///   - tls: `nil` for that of the run's variant.
    ///   - socketPath: of a Unix socket to listen at; `nil` for a port of 127.0.0.1.
    init(tls: TLSContext? = nil, at socketPath: String? = nil, _ answers: [String: Answer] = [:]) async throws {
        let shared = Shared()
        shared.with { state in
            for (path, answer) in answers { state.routes[path] = Route { _ in answer } }
        }
        self.state = shared
        let tls = try tls ?? Certificates.currentServer()
        self.isSecure = tls != nil
        let door = try Acceptor(shared, tls)
        self.door = door
        let address = socketPath.map { SocketAddress.unix(path: $0) } ?? .ipv4(address: 0x7F00_0001, port: 0)
        self.port = try await withCheckedThrowingContinuation { continuation in
            door.loop.execute { continuation.resume(with: Result { try door.open(at: address) }) }
        }
    }

    deinit { self.stop() }

    /// Refuses new connections from now on, and closes all open ones.
    func stop() {
        let door = self.door
        door.loop.execute { door.close() }
        self.dropConnections()
    }

    /// Closes every connection, and keeps accepting new ones.
    func dropConnections() {
        for connection in self.state.with({ Array($0.open.values) }) {
            self.door.loop.execute { connection.drop() }
        }
    }

    /// Ends every connection, and keeps accepting new ones; `hasLost` waits for the clients' ends.
    func finishConnections() {
        for connection in self.state.with({ Array($0.open.values) }) {
            self.door.loop.execute { connection.finish() }
        }
    }

    /// Accepts connections. Confined to its loop.
    private final class Acceptor: SocketListenerOwner, @unchecked Sendable {
        private static let loops = Result { try LoopGroup(count: 4) }
        private static let next = Atomic(0)

        let loop: Loop
        private let shared: Shared
        private let tls: TLSContext?
        private var listener: SocketListener?

        init(_ shared: Shared, _ tls: TLSContext?) throws {
            let loops = try Self.loops.get().loops
            self.loop = loops[Self.next.add(1, ordering: .relaxed).newValue % loops.count]
            self.shared = shared
            self.tls = tls
        }

        /// - Returns: the port; 0 for a Unix socket.
        func open(at address: SocketAddress) throws -> Int {
            let listener = try SocketListener(address, on: self.loop, owner: self)
            self.listener = listener
            return listener.address.port.map(Int.init) ?? 0
        }

        func close() {
            self.listener?.close()
            self.listener = nil
        }

        func accepted(_ socket: AcceptedSocket, by listener: SocketListener) {
            guard
                let connection = try? SocketConnection(
                    adopting: socket.descriptor, peer: socket.peer, on: self.loop, paused: true)
            else { return }
            WebConnection(self.shared, connection).begin(self.tls)
        }

        func acceptingPaused(by listener: SocketListener, _ error: SystemError) {}
        func acceptingResumed(by listener: SocketListener) {}
    }

    // MARK: Addresses

    var scheme: String { self.isSecure ? "https" : "http" }
    var root: String { "\(self.scheme)://127.0.0.1:\(self.port)" }

    func url(_ path: String = "/") -> URL { URL(string: self.root + path) ?? URL(filePath: "/") }

    // MARK: Routes

    /// The responses by path; a path without an entry gets 404.
    func on(_ path: String, _ answer: Answer) { self.route(path, Route { _ in answer }) }
    func on(_ path: String, _ script: @escaping Script) { self.route(path, Route(script: script)) }
    /// Answers after the head, independently of the body.
    func onHead(_ path: String, _ script: @escaping Script) { self.route(path, Route(isEarly: true, script: script)) }

    /// The responses in order; the last is repeated.
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

    // MARK: Recorded requests

    var requests: [ReceivedRequest] { self.state.with { $0.requests } }
    func requests(_ path: String) -> [ReceivedRequest] { self.requests.filter { $0.path == path } }
    /// The number of all connections.
    var connections: Int { self.state.with { $0.connections } }
    var openConnections: Int { self.state.with { $0.open.count } }
    var bytesReceived: Int { self.state.with { $0.bytesReceived } }
    func metadata(_ connection: Int) -> TLSMetadata? { self.state.with { $0.metadata[connection] } }

    /// Waits until `count` requests have arrived.
    @discardableResult
    func hasReceived(_ count: Int) async -> Bool {
        let gate = Gate()
        self.state.with { state in
            if state.requests.count >= count { gate.open() } else { state.arrivals.append((count, gate)) }
        }
        return await gate.pass()
    }

    /// Waits until the client has closed the connection.
    func hasLost(_ connection: Int) async -> Bool {
        await self.state.with { state -> Gate in
            if let gate = state.ended[connection] { return gate }
            let gate = Gate()
            state.ended[connection] = gate
            return gate
        }.pass()
    }
}
