import ByteKernels
import HTTP2Engine
import HTTPTransport
import SessionTasks
import StreamTransport
import Synchronization
import TLSEngine
import WireText

/// An HTTP/2 server with a script that answers each event.
final class HTTP2Server: Sendable {
    /// Called on the servers' loop with all events but `data`, which is kept and consumed.
    typealias Script = @Sendable (HTTP2Peer, HTTP2Event) -> Void

    let port: UInt16
    private let door: Acceptor

    init(
        tls: TLSContext? = nil, settings: HTTP2Settings = HTTP2Settings(), _ script: @escaping Script
    ) async throws {
        let door = Acceptor(tls, settings, script)
        self.door = door
        self.port = try await withCheckedThrowingContinuation { continuation in
            TestLoops.servers.execute { continuation.resume(with: Result { try door.open() }) }
        }
    }

    deinit {
        let door = self.door
        TestLoops.servers.execute { door.close() }
    }

    /// The number of accepted connections.
    var connections: Int { self.door.connections.load(ordering: .relaxed) }

    func request(_ method: String = "GET", target: String = "/", _ fields: [(String, String)] = []) -> ExchangeRequest {
        let head = RequestHead(
            method: method, target: target, fields: FieldLines(fields.map { FieldLine($0.0, $0.1) }))
        var request = ExchangeRequest(ServerEndpoint(.http, host: "127.0.0.1", port: self.port), head: head)
        request.assumesHTTP2 = true
        return request
    }

    func secureRequest(_ context: TLSContext, target: String = "/") -> ExchangeRequest {
        var request = self.request(target: target)
        request.origin.scheme = .https
        request.assumesHTTP2 = false
        var secure = SecureSetup(context: context)
        secure.serverName = "server.test"
        request.secure = secure
        return request
    }

    private final class Acceptor: SocketListenerOwner, @unchecked Sendable {
        let connections = Atomic(0)
        private let tls: TLSContext?
        private let settings: HTTP2Settings
        private let script: Script
        private var listener: SocketListener?

        init(_ tls: TLSContext?, _ settings: HTTP2Settings, _ script: @escaping Script) {
            self.tls = tls
            self.settings = settings
            self.script = script
        }

        func open() throws -> UInt16 {
            let listener = try SocketListener(.ipv4(address: 0x7F00_0001, port: 0), on: TestLoops.servers, owner: self)
            self.listener = listener
            return listener.address.port ?? 0
        }

        func close() {
            self.listener?.close()
            self.listener = nil
        }

        func accepted(_ socket: AcceptedSocket, by listener: SocketListener) {
            let number = self.connections.add(1, ordering: .relaxed).oldValue
            guard
                let connection = try? SocketConnection(
                    adopting: socket.descriptor, peer: socket.peer, on: listener.loop, paused: true)
            else { return }
            guard let tls else { return self.begin(connection, number) }
            SecureTransport.upgrade(connection, settings: SecureSettings(context: tls), received: []) { result in
                if case .success(let transport) = result { self.begin(transport, number) }
            }
        }

        private func begin(_ transport: any Transport, _ number: Int) {
            guard let engine = try? HTTP2Connection(.server, settings: self.settings) else { return }
            HTTP2Peer(engine, on: transport, number: number, self.script).begin()
        }

        func acceptingPaused(by listener: SocketListener, _ error: SystemError) {}
        func acceptingResumed(by listener: SocketListener) {}
    }
}

/// One connection of an `HTTP2Server`. Confined to the servers' loop.
final class HTTP2Peer: TransportConsumer, @unchecked Sendable {
    let engine: HTTP2Connection
    /// From 0 up.
    let number: Int
    /// Whether received body bytes are returned to the flow-control windows.
    var consumes = true
    private(set) var bodies: [HTTP2StreamID: [UInt8]] = [:]
    private var transport: (any Transport)?
    private let script: HTTP2Server.Script

    init(_ engine: HTTP2Connection, on transport: any Transport, number: Int, _ script: @escaping HTTP2Server.Script) {
        self.engine = engine
        self.transport = transport
        self.number = number
        self.script = script
    }

    func begin() {
        self.transport?.consumer = self
        self.transport?.resumeReading()
        self.flush()
    }

    /// Answers a request; without a body, the head ends the stream.
    func respond(
        _ stream: HTTP2StreamID, _ status: Int = 200, _ fields: [(String, String)] = [], _ body: [UInt8] = [],
        trailers: [(String, String)] = [], ends: Bool = true
    ) {
        let head = HTTP2FieldBlock([(":status", "\(status)")] + fields.map { (name: $0.0, value: $0.1) })
        let endsOutput = ends && body.isEmpty && trailers.isEmpty
        try? self.engine.respond(stream, head, endsOutput: endsOutput)
        if !body.isEmpty { _ = try? self.engine.send(stream, body.span.bytes) }
        guard ends, !endsOutput else { return self.flush() }
        let section = trailers.isEmpty ? nil : HTTP2FieldBlock(trailers.map { (name: $0.0, value: $0.1) })
        try? self.engine.endOutput(stream, trailers: section)
        self.flush()
    }

    /// Sends bytes that no engine sends.
    func sendRaw(_ bytes: [UInt8]) {
        self.flush()
        bytes.withRawSpan { _ = self.transport?.write($0) }
    }

    func close() { self.transport?.close(linger: .seconds(1)) }
    func reset() { TestLoops.servers.execute { self.transport?.reset() } }

    func flush() {
        guard let transport = self.transport else { return }
        self.engine.write {
            _ = transport.write($0)
            return true
        }
    }

    func bytesReceived(_ bytes: inout MutableRawSpan) -> Int {
        var offset = 0
        while let event = self.engine.nextEvent(in: bytes.bytes, from: &offset) {
            if case .data(let stream, let range) = event {
                self.bodies[stream, default: []] += [UInt8](bytes.bytes.extracting(range))
                if self.consumes { self.engine.consume(stream, range.count) }
            } else {
                self.script(self, event)
            }
        }
        self.flush()
        return bytes.byteCount
    }

    func inputClosed() { self.close() }
    func outputProgressed() { self.flush() }
    func transportEnded(_ end: TransportEnd) { self.transport = nil }
}
