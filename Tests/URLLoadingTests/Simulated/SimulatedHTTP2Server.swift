import ByteKernels
import HTTP2Engine
import StreamTransport
import TestSupport

/// An HTTP/2 server of scripted peers, which answers by the plan of each task.
///
/// The endings mean: `wholeThenClosed` GOAWAY, `wholeThenGarbage` bytes that are no frame, `cutOff` RST_STREAM or the end
/// of the connection, `closedBeforeHead` REFUSED_STREAM for the first attempt, `malformedHead` a head without a status.
final class SimulatedHTTP2Server: SimulatedServer {
    let audit = RequestAudit()
    private let listener: ScriptedListener
    private var connections: [Connection] = []
    private var chance: SeededGenerator
    private let settings: HTTP2Settings
    /// Tasks with a refused request.
    private var refused: Set<Int> = []

    private final class Connection {
        let peer: ScriptedPeer
        let engine: HTTP2Connection
        var streams: [HTTP2StreamID: SimulatedRequestReader.Request] = [:]
        var garbage: [UInt8] = []
        var closes = false
        var saidGoAway = false

        init(_ peer: ScriptedPeer, _ engine: HTTP2Connection) {
            self.peer = peer
            self.engine = engine
        }
    }

    init(_ listener: ScriptedListener, using chance: SeededGenerator) {
        self.listener = listener
        var chance = chance
        var settings = HTTP2Settings()
        settings.maximumConcurrentStreams = UInt32.random(in: 1...6, using: &chance)
        settings.streamWindow = Int32.random(in: 1...65_535, using: &chance)
        settings.connectionWindow = 65_535
        self.settings = settings
        self.chance = chance
    }

    func step() {
        while self.connections.count < self.listener.accepted.count {
            guard let engine = try? HTTP2Connection(.server, settings: self.settings) else { return }
            self.connections.append(Connection(self.listener.accepted[self.connections.count], engine))
        }
        for connection in self.connections where !connection.peer.isClosed { self.step(connection) }
    }

    func pass() {
        for connection in self.connections where !connection.peer.isClosed {
            connection.peer.isReading = Int.random(in: 0..<6, using: &self.chance) > 0
        }
    }

    func readAll() {
        for connection in self.connections where !connection.peer.isClosed { connection.peer.isReading = true }
    }

    private func step(_ connection: Connection) {
        let peer = connection.peer
        guard peer.failure == nil else { return peer.close() }
        if !peer.received.isEmpty {
            let input = peer.takeReceived()
            var offset = 0
            while let event = connection.engine.nextEvent(in: input.span.bytes, from: &offset) {
                self.handle(event, input, connection)
            }
        }
        guard peer.unsentBytes == 0 else { return }
        connection.engine.write {
            peer.send([UInt8]($0))
            return peer.unsentBytes == 0
        }
        if !connection.garbage.isEmpty {
            peer.send(connection.garbage)
            connection.garbage = []
        }
        if connection.closes, !connection.engine.wantsToWrite { peer.finish() }
        if peer.sawEnd, peer.unsentBytes == 0 { peer.close() }
    }

    private func handle(_ event: HTTP2Event, _ input: [UInt8], _ connection: Connection) {
        switch event {
        case .head(let stream, let block, let isLast):
            guard let request = SimulatedRequestReader.Request(block) else {
                return self.audit.complain("malformed request: \(block)")
            }
            // A GOAWAY names the last stream before it, and may still be in the write queue.
            guard !connection.saidGoAway, !self.refuses(request) else {
                return connection.engine.reset(stream, .refusedStream)
            }
            self.audit.check(request)
            connection.streams[stream] = request
            if self.audit.plans[request.task]?.answersEarly == true { self.answer(request, stream, connection) }
            if isLast { self.requestEnded(stream, connection) }
        case .data(let stream, let range):
            connection.engine.consume(stream, range.count)
            connection.streams[stream]?.body += input[range]
            self.audit.checkBody(
                connection.streams[stream]?.body ?? [], of: connection.streams[stream], isComplete: false)
        case .inputEnded(let stream): self.requestEnded(stream, connection)
        case .closed(let stream, _): connection.streams[stream] = nil
        case .failed(let failure): self.audit.complain("HTTP/2: \(failure)")
        default: break
        }
    }

    private func refuses(_ request: SimulatedRequestReader.Request) -> Bool {
        self.audit.plans[request.task]?.ending == .closedBeforeHead && self.refused.insert(request.task).inserted
    }

    private func requestEnded(_ stream: HTTP2StreamID, _ connection: Connection) {
        guard let request = connection.streams[stream] else { return }
        self.audit.checkBody(request.body, of: request, isComplete: true)
        if self.audit.plans[request.task]?.answersEarly == false { self.answer(request, stream, connection) }
    }

    private func answer(
        _ request: SimulatedRequestReader.Request, _ stream: HTTP2StreamID, _ connection: Connection
    ) {
        guard let plan = self.audit.plans[request.task] else { return }
        let answer = PlannedResponse(to: request, plan, port: self.listener.address.port ?? 0)
        if answer.ending == .silent { return }
        var head = [(name: ":status", value: "\(answer.status)")] + answer.fields
        if plan.framing == .length { head.append(("content-length", "\(answer.content.count)")) }
        if answer.ending == .malformedHead { head.removeFirst() }
        let content = request.method == "HEAD" ? [] : answer.content
        if plan.sendsInformational {
            try? connection.engine.respond(stream, HTTP2FieldBlock([(":status", "103")]), endsOutput: false)
        }
        try? connection.engine.respond(stream, HTTP2FieldBlock(head), endsOutput: false)
        self.send(content, answer.ending, stream, connection)
    }

    private func send(
        _ content: [UInt8], _ ending: ServerPlan.ResponseEnd, _ stream: HTTP2StreamID, _ connection: Connection
    ) {
        let engine = connection.engine
        guard case .cutOff(let byReset, let end) = ending else {
            _ = try? engine.send(stream, content.span.bytes)
            try? engine.endOutput(stream)
            if ending == .wholeThenClosed, !connection.saidGoAway {
                connection.saidGoAway = true
                engine.goAway()
            }
            if ending == .wholeThenGarbage { connection.garbage = Array(repeating: 0xFF, count: 40) }
            return
        }
        _ = try? engine.send(stream, content.span.bytes.extracting(first: min(end, max(0, content.count - 1))))
        if byReset { engine.reset(stream, .internalError) } else { connection.closes = true }
    }
}

extension SimulatedRequestReader.Request {
    fileprivate init?(_ block: HTTP2FieldBlock) {
        let fields = (0..<block.count).map { index in
            (
                String(decoding: block.name(at: index), as: UTF8.self),
                String(decoding: block.value(at: index), as: UTF8.self)
            )
        }
        let pseudo = Dictionary(fields.filter { $0.0.hasPrefix(":") }) { first, _ in first }
        guard let method = pseudo[":method"], let target = pseudo[":path"] else { return nil }
        self.init(method: method, target: target, fields)
    }
}
