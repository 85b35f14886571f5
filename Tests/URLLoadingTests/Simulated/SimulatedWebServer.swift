import SimulatedNetwork
import StreamTransport
import TestSupport

/// An HTTP/1.1 server of scripted peers, which answers by the plan of each task and checks the use of its connections.
final class SimulatedWebServer: SimulatedServer {
    let audit = RequestAudit()
    /// Whether a request may arrive before the previous response has ended.
    private let allowsPipelining: Bool
    private let listener: ScriptedListener
    private var connections: [Connection] = []
    private var chance: SeededGenerator

    private enum Closing {
        case finish
        case reset
    }

    private final class Connection {
        let peer: ScriptedPeer
        var reader = SimulatedRequestReader()
        var output: ArraySlice<UInt8> = []
        var pieceSize = 4096
        var closing: Closing?
        /// A response is due, or being sent.
        var isAnswering = false
        var request: SimulatedRequestReader.Request?
        var closesWhenIdle = false
        var isSilent = false
        /// The response to the current request was sent before the request had ended.
        var isAnswered = false
        var lastTask = 0
        /// The last response announced the end of the connection.
        var isLast = false

        init(_ peer: ScriptedPeer) { self.peer = peer }
    }

    init(_ listener: ScriptedListener, allowsPipelining: Bool, using chance: SeededGenerator) {
        self.allowsPipelining = allowsPipelining
        self.listener = listener
        self.chance = chance
    }

    /// Reads, and sends part of the pending output. Called in each step of the simulation.
    func step() {
        while self.connections.count < self.listener.accepted.count {
            self.connections.append(Connection(self.listener.accepted[self.connections.count]))
        }
        for connection in self.connections where !connection.peer.isClosed { self.step(connection) }
    }

    /// Lets some connections be slow to read, and closes some idle ones.
    func pass() {
        for connection in self.connections where !connection.peer.isClosed {
            connection.peer.isReading = Int.random(in: 0..<6, using: &self.chance) > 0
            guard connection.closesWhenIdle, !connection.isAnswering, connection.peer.unsentBytes == 0,
                !connection.reader.isWithinRequest, Int.random(in: 0..<3, using: &self.chance) == 0
            else { continue }
            Bool.random(using: &self.chance) ? connection.peer.finish() : connection.peer.close()
        }
    }

    /// Makes all connections read at full speed again.
    func readAll() {
        for connection in self.connections where !connection.peer.isClosed { connection.peer.isReading = true }
    }

    private func step(_ connection: Connection) {
        guard connection.peer.failure == nil else { return connection.peer.close() }
        self.receive(connection)
        if !connection.output.isEmpty {
            let piece = connection.output.prefix(connection.pieceSize)
            connection.output = connection.output.dropFirst(piece.count)
            connection.peer.send(Array(piece))
        }
        guard connection.output.isEmpty, connection.isAnswering, !connection.isSilent else {
            if connection.peer.sawEnd, connection.output.isEmpty, connection.peer.unsentBytes == 0 {
                connection.peer.close()
            }
            return
        }
        connection.isAnswering = false
        switch connection.closing {
        case .finish: connection.peer.finish()
        // Earlier output may be lost.
        case .reset: connection.peer.reset()
        case nil: break
        }
    }

    private func receive(_ connection: Connection) {
        let isNew = !connection.peer.received.isEmpty
        if isNew { connection.reader.feed(connection.peer.takeReceived()) }
        // Requests after the last answered one are not answered.
        guard isNew || self.allowsPipelining, !self.allowsPipelining || connection.closing == nil else { return }
        while !connection.isAnswering || connection.request != nil, let event = connection.reader.next() {
            self.handle(event, connection)
        }
        // After an early answer, the rest of its request may still arrive.
        if connection.isAnswering, connection.request == nil, connection.reader.isWithinRequest, !self.allowsPipelining
        {
            let (rest, last) = (connection.reader.rest, connection.lastTask)
            self.audit.complain("before the end of the response to task \(last), on its connection: \(rest)")
        }
        self.audit.checkBody(connection.reader.body, of: connection.request, isComplete: false)
    }

    private func handle(_ event: SimulatedRequestReader.Event, _ connection: Connection) {
        switch event {
        case .malformed(let text): self.audit.complain("malformed request: \(text)")
        case .head(let request):
            connection.request = request
            connection.isAnswered = false
            if connection.isLast { self.audit.complain("a request after Connection: close") }
            self.audit.check(request)
            if self.audit.plans[request.task]?.answersEarly == true { self.answer(request, connection) }
        case .complete(let request):
            connection.request = nil
            self.audit.checkBody(request.body, of: request, isComplete: true)
            if !connection.isAnswered { self.answer(request, connection) }
        }
    }

    // MARK: Answering

    private func answer(_ request: SimulatedRequestReader.Request, _ connection: Connection) {
        guard let plan = self.audit.plans[request.task] else { return }
        (connection.isAnswering, connection.isAnswered) = (true, true)
        connection.lastTask = request.task
        connection.pieceSize = plan.pieceSize
        let answer = PlannedResponse(to: request, plan, port: self.listener.address.port ?? 0)
        let whole = self.encoded(answer, plan, hasContent: request.method != "HEAD")
        self.enqueue(whole, answer.ending, connection)
        // Otherwise the rest of the body would be parsed as the next request.
        connection.isLast = answer.isFinal && plan.framing == .untilClose
        if plan.answersEarly || connection.isLast { connection.closing = connection.closing ?? .finish }
    }

    private func enqueue(_ whole: [UInt8], _ ending: ServerPlan.ResponseEnd, _ connection: Connection) {
        switch ending {
        case .whole: connection.output += whole
        case .wholeThenClosed:
            connection.output += whole
            connection.closesWhenIdle = true
        case .wholeThenGarbage:
            connection.output += whole + Array("garbage".utf8)
            connection.closing = .finish
        case .cutOff(let byReset, let end):
            connection.output += whole.prefix(min(end, whole.count - 1))
            connection.closing = byReset ? .reset : .finish
        case .closedBeforeHead: connection.closing = .finish
        case .malformedHead:
            connection.output += Array("HTTP/1.1 two hundred\r\n\r\n".utf8)
            connection.closing = .finish
        case .silent: connection.isSilent = true
        }
    }

    private func encoded(_ answer: PlannedResponse, _ plan: ServerPlan, hasContent: Bool) -> [UInt8] {
        let framing = answer.isFinal ? plan.framing : .length
        var head = plan.sendsInformational ? "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" : ""
        head += "HTTP/1.1 \(answer.status) Reason\r\n"
        for (name, value) in answer.fields { head += "\(name): \(value)\r\n" }
        switch framing {
        case .length: head += "Content-Length: \(answer.content.count)\r\n"
        case .chunked: head += "Transfer-Encoding: chunked\r\n"
        case .untilClose: head += "Connection: close\r\n"
        }
        let start = Array("\(head)\r\n".utf8)
        guard hasContent else { return start }
        return start + (framing == .chunked ? self.chunks(of: answer.content) : answer.content)
    }

    private func chunks(of content: [UInt8]) -> [UInt8] {
        var bytes: [UInt8] = []
        for range in self.chance.cuts(of: content.count, longest: 1000) where !range.isEmpty {
            bytes += Array("\(String(range.count, radix: 16))\r\n".utf8) + content[range] + [13, 10]
        }
        return bytes + Array("0\r\nX-Trailer: 1\r\n\r\n".utf8)
    }
}
