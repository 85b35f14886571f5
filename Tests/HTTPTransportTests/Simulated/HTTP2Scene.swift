import ByteKernels
import HTTP2Engine
import HTTPTransport
import SimulatedNetwork
import StreamTransport
import TestSupport
import WireText

/// A pool, and an HTTP/2 server on the simulated network that answers each request with `body`, unless that is `nil`.
final class HTTP2Scene {
    let testbed: TransportTestbed
    let pool: ConnectionPool
    let listener: ScriptedListener
    /// Answers at the head of a request, and otherwise at its end.
    var answersAtHead = true
    /// Otherwise requests are read, and not answered.
    var answers = true
    /// Connections, from 0 up, whose server reads and answers nothing.
    var mutedConnections: Set<Int> = []
    /// What each connection has sent to the server.
    private(set) var received: [[UInt8]] = []
    private let body: [UInt8]?
    private var engines: [HTTP2Connection] = []
    private let settings: HTTP2Settings

    init(
        _ body: [UInt8]?, seed: UInt64 = 1, faults: FaultPlan = .calm, limit: Int = 6,
        settings: HTTP2Settings = HTTP2Settings()
    ) throws {
        self.testbed = TransportTestbed(.simulation, seed: seed, faults: faults)
        self.body = body
        self.settings = settings
        var settings = PoolSettings()
        settings.connectionsPerHost = limit
        self.pool = ConnectionPool(settings: settings, on: try self.testbed.makeLoop())
        self.listener = try self.testbed.makeHost().listen(at: .ipv4(address: 0x7F00_0001, port: 0))
    }

    func begin(
        _ method: String = "GET", body: RequestBody = .none, pull: Int = .max, needsFresh: Bool = false,
        idleTimeout: Duration = .seconds(60)
    ) -> (Exchange, ExchangeRecorder) {
        let origin = ServerEndpoint(.http, host: "127.0.0.1", port: self.listener.address.port)
        var request = ExchangeRequest(origin, head: RequestHead(method: method, target: "/"))
        request.assumesHTTP2 = true
        request.body = body
        request.needsFreshConnection = needsFresh
        request.idleTimeout = idleTimeout
        let recorder = ExchangeRecorder()
        let exchange = self.pool.exchange(request, consumer: recorder)
        recorder.pull(pull, exchange)
        exchange.start()
        return (exchange, recorder)
    }

    /// Answers requests until `condition` holds.
    func run(atMost limit: Duration = .seconds(3600), until condition: () -> Bool) -> Bool {
        self.testbed.run(
            until: {
                self.answer()
                return condition()
            }, atMost: limit)
    }

    func run(for duration: Duration) {
        _ = self.run(atMost: duration) { false }
    }

    private func answer() {
        guard self.body != nil else { return }
        for (index, peer) in self.listener.accepted.enumerated() {
            if index == self.engines.count, let engine = try? HTTP2Connection(.server, settings: self.settings) {
                self.engines.append(engine)
                self.received.append([])
            }
            guard index < self.engines.count else { return }
            guard !self.mutedConnections.contains(index) else { continue }
            let input = peer.takeReceived()
            self.received[index] += input
            self.handle(input, self.engines[index])
            self.write(index)
        }
    }

    private func handle(_ input: [UInt8], _ engine: HTTP2Connection) {
        var offset = 0
        while let event = engine.nextEvent(in: input.span.bytes, from: &offset) {
            switch event {
            case .head(let stream, _, let isLast):
                if self.answersAtHead || isLast { self.respond(stream, engine) }
            case .inputEnded(let stream): if !self.answersAtHead { self.respond(stream, engine) }
            default: break
            }
        }
    }

    private func respond(_ stream: HTTP2StreamID, _ engine: HTTP2Connection) {
        guard self.answers, let body = self.body else { return }
        try? engine.respond(stream, HTTP2FieldBlock([(":status", "200")]), endsOutput: false)
        _ = try? engine.send(stream, body.span.bytes)
        try? engine.endOutput(stream)
    }

    private func write(_ index: Int) {
        let peer = self.listener.accepted[index]
        self.engines[index].write {
            peer.send([UInt8]($0))
            return true
        }
    }

    /// Gives bytes of a request's body back to the stream's window.
    func consume(_ count: Int, of stream: HTTP2StreamID, on index: Int = 0) {
        guard index < self.engines.count else { return }
        self.engines[index].consume(stream, count)
        self.write(index)
    }

    func openStreams(on index: Int = 0) -> Int {
        index < self.engines.count ? self.engines[index].openStreams : 0
    }

    /// Frames of one type that came on a connection: their stream and payload.
    func frames(_ type: UInt8, on index: Int = 0) -> [(stream: Int, payload: [UInt8])] {
        // After the preface (RFC 9113 §3.4).
        var rest = self.received[index].dropFirst(24)
        var frames: [(stream: Int, payload: [UInt8])] = []
        while rest.count >= 9 {
            let header = Array(rest.prefix(9))
            let count = Self.number(header[0..<3])
            guard rest.count >= 9 + count else { return frames }
            let payload = rest.dropFirst(9).prefix(count)
            if header[3] == type { frames.append((Self.number(header[5..<9]), Array(payload))) }
            rest = rest.dropFirst(9 + count)
        }
        return frames
    }

    /// Bytes that the client allows beyond those that it was sent: `received` on stream 0, on all of them together.
    func window(of stream: Int, initial: Int, received: Int, on index: Int = 0) -> Int {
        let updates = self.frames(8, on: index).filter { $0.stream == stream }
        return updates.reduce(initial - received) { $0 + Self.number($1.payload[...]) }
    }

    private static func number(_ bytes: ArraySlice<UInt8>) -> Int { bytes.reduce(0) { $0 << 8 | Int($1) } }

    /// - Returns: misuses of descriptors.
    func end() -> [String] {
        self.pool.close()
        self.testbed.settle()
        return self.testbed.close()
    }
}
