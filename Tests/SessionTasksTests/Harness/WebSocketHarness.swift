import ByteKernels
import SessionTasks
import SimulatedNetwork
import StreamTransport
import TLSEngine
import TestSupport
import Testing
import WebSocketProtocol

/// WebSocket tasks of both roles on one loop, and raw peers that can send bytes which no task would send.
final class WebSocketHarness {
    let base: TaskHarness
    /// Tasks that were accepted, in order.
    private(set) var accepted: [WebSocketTask] = []
    /// What accepted tasks are made with.
    var options = WebSocketOptions()
    var deflate: DeflatePolicy?
    private var handshakes: [AcceptedHandshake] = []

    init(_ kind: TransportTestbed.Kind, seed: UInt64 = 1, faults: FaultPlan = .calm) throws {
        self.base = try TaskHarness(kind, seed: seed, faults: faults)
        self.base.acceptor.onAccepted = { [unowned self] connection in
            let handshake = AcceptedHandshake { [unowned self] request in
                let acceptance = request.acceptance(subprotocols: ["chat"], deflate: self.deflate)
                let policy = self.deflate ?? DeflatePolicy()
                self.accepted.append(
                    WebSocketTask(
                        accepting: connection, response: acceptance.response, subprotocol: acceptance.subprotocol,
                        deflate: acceptance.deflate.map { NegotiatedDeflate($0, policy: policy) }, options: self.options
                    ))
            }
            self.handshakes.append(handshake)
            handshake.start(connection)
        }
    }

    func run(atMost limit: Duration = .seconds(10), until condition: () -> Bool) -> Bool {
        self.base.run(atMost: limit, until: condition)
    }

    func perform(_ body: @escaping () -> Void) {
        self.base.perform(body)
    }

    /// A task that will open towards the accepting side when resumed.
    func client(
        to address: SocketAddress? = nil, options: WebSocketOptions = WebSocketOptions(), deflate: DeflatePolicy? = nil
    ) -> WebSocketTask {
        let target = OpeningTarget(.address(address ?? self.base.listener.address))
        let handshake = ClientHandshake(
            authority: "server.test", target: "/", subprotocols: ["chat"], offers: deflate?.offers ?? [])
        return WebSocketTask(
            opening: ClientOpening(target: target, handshake: handshake, deflate: deflate), on: self.base.loop,
            options: options)
    }

    /// Both ends of an open WebSocket.
    func pair(
        options: WebSocketOptions = WebSocketOptions(), deflate: DeflatePolicy? = nil
    ) throws -> (client: WebSocketTask, server: WebSocketTask) {
        let before = self.accepted.count
        let client = self.client(options: options, deflate: deflate)
        self.perform { client.resumeOnLoop() }
        #expect(self.run { self.accepted.count > before && client.record.openedAt != nil })
        return (client, try #require(self.accepted.last))
    }

    /// An open task in this role, and a raw peer that is through with the opening handshake.
    func raw(
        _ role: TaskRole, options: WebSocketOptions = WebSocketOptions()
    ) throws -> (task: WebSocketTask, peer: RawWebSocketPeer) {
        switch role {
        case .accepted:
            self.options = options
            let before = self.accepted.count
            let peer = try self.base.host.connect(to: self.base.listener.address)
            peer.send(RawWebSocketPeer.request)
            #expect(self.run { self.accepted.count > before && peer.received.suffix(4) == Array("\r\n\r\n".utf8)[...] })
            _ = peer.takeReceived()
            return (try #require(self.accepted.last), RawWebSocketPeer(peer, isClient: true))
        case .opened:
            let before = self.base.peers.accepted.count
            let task = self.client(to: self.base.peers.address, options: options)
            self.perform { task.resumeOnLoop() }
            #expect(
                self.run {
                    self.base.peers.accepted.count > before
                        && self.base.peers.accepted.last?.received.suffix(4) == Array("\r\n\r\n".utf8)[...]
                })
            let peer = try #require(self.base.peers.accepted.last)
            peer.send(RawWebSocketPeer.response(to: peer.takeReceived(), accept: AcceptKey.value))
            #expect(self.run { task.record.openedAt != nil })
            return (task, RawWebSocketPeer(peer, isClient: false))
        }
    }

    func finish(sourceLocation: SourceLocation = #_sourceLocation) {
        self.base.finish(sourceLocation: sourceLocation)
    }
}

/// Reads one opening request off a connection and hands it on.
final class AcceptedHandshake: TransportConsumer {
    private var parser = RequestParser()
    private let done: (OpeningRequest) -> Void
    private var transport: SocketConnection?

    init(done: @escaping (OpeningRequest) -> Void) {
        self.done = done
    }

    func start(_ transport: SocketConnection) {
        self.transport = transport
        transport.consumer = self
        transport.resumeReading()
    }

    func bytesReceived(_ bytes: inout MutableRawSpan) -> Int {
        var used = 0
        guard let head = try? self.parser.parse(bytes.bytes, consumed: &used) else { return used }
        guard case .success(let request) = ServerHandshake.evaluate(head) else {
            self.transport?.reset()
            return used
        }
        self.transport?.pauseReading()
        self.done(request)
        self.transport = nil
        return used
    }

    func inputClosed() {}
    func outputProgressed() {}
    func transportEnded(_ end: TransportEnd) {}
}
