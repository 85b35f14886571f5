import SimulatedNetwork
import StreamTransport
import TestSupport

/// An HTTP/1.1 server of scripted peers, which answers as the plan of each task says and watches how its connections are
/// used.
final class SimulatedWebServer {
    let listener: ScriptedListener
    var plans: [Int: ServerPlan] = [:]
    /// Bytes of the body that each task sends.
    var bodySizes: [Int: Int] = [:]
    private(set) var complaints: [String] = []
    private(set) var requests = 0
    private var connections: [Connection] = []
    private var chance: SeededGenerator
    /// Requests that must not be repeated, which were received.
    private var unrepeatable: Set<String> = []

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
        /// The current request was answered before its end.
        var isAnswered = false
        var lastTask = 0
        /// The last response announced the end of the connection.
        var isLast = false

        init(_ peer: ScriptedPeer) { self.peer = peer }
    }

    init(_ listener: ScriptedListener, using chance: SeededGenerator) {
        self.listener = listener
        self.chance = chance
    }

    /// Reads, and sends some of what is due. Called in each step of the simulation.
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

    /// No connection is slow any more.
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
        // What was sent before may be lost.
        case .reset: connection.peer.reset()
        case nil: break
        }
    }

    private func receive(_ connection: Connection) {
        guard !connection.peer.received.isEmpty else { return }
        connection.reader.feed(connection.peer.takeReceived())
        while !connection.isAnswering || connection.request != nil, let event = connection.reader.next() {
            self.handle(event, connection)
        }
        // With an early answer, the rest of its own request may still come.
        if connection.isAnswering, connection.request == nil, connection.reader.isWithinRequest {
            let (rest, last) = (connection.reader.rest, connection.lastTask)
            self.complaints.append("before the end of the response to task \(last), on its connection: \(rest)")
        }
        self.checkBody(connection.reader.body, of: connection.request, isComplete: false)
    }

    private func handle(_ event: SimulatedRequestReader.Event, _ connection: Connection) {
        switch event {
        case .malformed(let text): self.complaints.append("malformed request: \(text)")
        case .head(let request):
            connection.request = request
            connection.isAnswered = false
            if connection.isLast { self.complaints.append("a request after Connection: close") }
            self.check(request)
            if self.plans[request.task]?.answersEarly == true { self.answer(request, connection) }
        case .complete(let request):
            connection.request = nil
            self.checkBody(request.body, of: request, isComplete: true)
            if !connection.isAnswered { self.answer(request, connection) }
        }
    }

    private func check(_ request: SimulatedRequestReader.Request) {
        self.requests += 1
        let foreign = request.cookies.filter { !$0.hasPrefix(request.host) }
        if !foreign.isEmpty { self.complaints.append("\(request.host) got the cookies \(foreign)") }
        if self.plans[request.task] == nil { self.complaints.append("a request of no task") }
        guard request.method == "POST" else { return }
        let key = "\(request.task)/\(request.step) \(request.authorization ?? "")"
        if !self.unrepeatable.insert(key).inserted { self.complaints.append("POST \(key) was repeated") }
    }

    private func checkBody(_ body: [UInt8], of request: SimulatedRequestReader.Request?, isComplete: Bool) {
        guard let request, ["POST", "PUT"].contains(request.method) else { return }
        let expected = BodyPattern.request(request.task, self.bodySizes[request.task, default: 0])
        guard isComplete ? body != expected : !expected.starts(with: body) else { return }
        self.complaints.append("task \(request.task): wrong request body, \(body.count) bytes of \(expected.count)")
    }

    // MARK: Answering

    private func answer(_ request: SimulatedRequestReader.Request, _ connection: Connection) {
        guard let plan = self.plans[request.task] else { return }
        (connection.isAnswering, connection.isAnswered) = (true, true)
        connection.lastTask = request.task
        connection.pieceSize = plan.pieceSize
        var hasDetour = false
        switch plan.detour {
        case .none: break
        case .redirect(let status, let toOtherHost) where request.step == 0:
            hasDetour = true
            let host = toOtherHost ? "two.test" : "one.test"
            let target = "Location: http://\(host):\(self.listener.address.port ?? 0)/\(request.task)/1\r\n"
            connection.output += self.response(request, plan, status, target)[...]
        case .redirect: break
        case .basic, .digest:
            guard request.authorization == nil else { break }
            hasDetour = true
            let isBasic = plan.detour == .basic
            let challenge = isBasic ? "Basic realm=\"r\"" : "Digest realm=\"r\", nonce=\"n1\", qop=\"auth\""
            connection.output += self.response(request, plan, 401, "WWW-Authenticate: \(challenge)\r\n")[...]
        }
        if !hasDetour { self.answerFinally(request, plan, connection) }
        // Otherwise the unread rest of the body would be the next request.
        connection.isLast = plan.framing == .untilClose && !hasDetour
        if plan.answersEarly || connection.isLast { connection.closing = connection.closing ?? .finish }
    }

    private func answerFinally(
        _ request: SimulatedRequestReader.Request, _ plan: ServerPlan, _ connection: Connection
    ) {
        let name = "\(request.host)\(request.task)"
        let whole = self.response(request, plan, 200, "Set-Cookie: \(name)=1\r\n")
        switch plan.ending {
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

    private func response(
        _ request: SimulatedRequestReader.Request, _ plan: ServerPlan, _ status: Int, _ fields: String
    ) -> [UInt8] {
        let content = BodyPattern.response(request.task, status: status, plan)
        let framing = status == 200 ? plan.framing : .length
        var head = plan.sendsInformational ? "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" : ""
        head += "HTTP/1.1 \(status) Reason\r\nContent-Type: application/octet-stream\r\n\(fields)"
        switch framing {
        case .length: head += "Content-Length: \(content.count)\r\n"
        case .chunked: head += "Transfer-Encoding: chunked\r\n"
        case .untilClose: head += "Connection: close\r\n"
        }
        let start = Array("\(head)\r\n".utf8)
        if request.method == "HEAD" { return start }
        return start + (framing == .chunked ? self.chunks(of: content) : content)
    }

    private func chunks(of content: [UInt8]) -> [UInt8] {
        var bytes: [UInt8] = []
        for range in self.chance.cuts(of: content.count, longest: 1000) where !range.isEmpty {
            bytes += Array("\(String(range.count, radix: 16))\r\n".utf8) + content[range] + [13, 10]
        }
        return bytes + Array("0\r\nX-Trailer: 1\r\n\r\n".utf8)
    }
}
