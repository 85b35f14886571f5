import ByteKernels
import SessionTasks
import StreamTransport
import TLSEngine

/// One connection of a `WebServer`. Confined to its loop.
final class WebConnection: TransportConsumer, @unchecked Sendable {
    private let shared: WebServer.Shared
    private let number: Int
    private let loop: Loop
    /// `nil` after the end.
    private var transport: (any Transport)?
    private var reader = RequestReader()
    /// `nil` unless the connection speaks HTTP/2.
    private var streams: WebStreams?
    private var steps: ArraySlice<Answer.Step> = []
    private var isBusy = false
    private var isWaiting = false
    private var wasEarly = false
    private var isOver = false
    private var isCutting = false
    private var turn = 0

    init(_ shared: WebServer.Shared, _ connection: SocketConnection) {
        self.shared = shared
        self.loop = connection.loop
        self.transport = connection
        self.number = shared.with { state in
            defer { state.connections += 1 }
            return state.connections
        }
        shared.with { $0.open[self.number] = self }
    }

    func begin(_ tls: TLSContext?) {
        guard let tls, let plain = self.transport else { return self.listen() }
        var settings = SecureSettings(context: tls)
        settings.timeout = .seconds(240)
        SecureTransport.upgrade(plain, settings: settings, received: []) { result in
            switch result {
            case .success(let secure):
                self.shared.with { $0.metadata[self.number] = secure.metadata }
                self.transport = secure
                self.listen()
            case .failure: self.transportEnded(.abandoned)
            }
        }
    }

    private func listen() {
        self.transport?.consumer = self
        self.transport?.resumeReading()
    }

    /// Ends the output; the connection is closed when the client has ended its own.
    func finish() {
        self.transport?.shutdownOutput()
    }

    /// Closes the connection in any state.
    func drop() {
        self.transport?.close(linger: .zero)
    }

    func bytesReceived(_ bytes: inout MutableRawSpan) -> Int {
        let copy = [UInt8](bytes.bytes)
        self.shared.with { $0.bytesReceived += copy.count }
        // The connection preface of HTTP/2 (RFC 9113 §3.4).
        if self.turn == 0, !self.isBusy, self.streams == nil, copy.starts(with: "PRI * HTTP/2.0".utf8) {
            self.streams = self.makeStreams()
        }
        if let streams {
            streams.bytesReceived(bytes.bytes)
            return copy.count
        }
        self.reader.add(copy)
        self.serve()
        return copy.count
    }

    private func makeStreams() -> WebStreams? {
        guard let transport = self.transport else { return nil }
        return WebStreams(
            transport,
            early: { [unowned self] request in
                let route = self.shared.with { $0.routes[request.path] }
                return route.flatMap { $0.isEarly ? $0.script(request) : nil }
            },
            received: { [unowned self] request in
                request.connection = self.number
                request.turn = self.turn
                self.turn += 1
                let (route, copy) = (self.shared.with { $0.routes[request.path] }, request)
                // First, because a script may tell the test that the request has arrived.
                self.note(request)
                let isEarly = route?.isEarly ?? false
                let answer = isEarly ? nil : route?.script(copy)
                return answer ?? .text("nothing here", status: 404)
            })
    }

    func inputClosed() {
        self.ended()
        if !self.isBusy { self.drop() }
    }

    /// The records written before are still being sent.
    func outputProgressed() {
        self.streams?.flush()
        guard self.isCutting, let lower = (self.transport as? SecureTransport)?.lower else { return }
        self.isCutting = false
        lower.consumer = nil
        lower.close(linger: .seconds(1))
        self.transportEnded(.abandoned)
    }

    func transportEnded(_ end: TransportEnd) {
        self.transport = nil
        self.isOver = true
        self.ended()
        self.shared.with { $0.open[self.number] = nil }
    }

    private func ended() {
        let number = self.number
        let gate = self.shared.with { state -> Gate in
            let gate = state.ended[number] ?? Gate()
            state.ended[number] = gate
            return gate
        }
        gate.open()
    }

    // MARK: Requests

    private func serve() {
        while !self.isBusy, !self.isOver, let event = self.reader.next() {
            switch event {
            case .head(var request):
                request.connection = self.number
                request.turn = self.turn
                self.takeRoot(from: &request)
                self.headReceived(request)
            case .whole(var request):
                request.connection = self.number
                request.turn = self.turn
                self.turn += 1
                self.takeRoot(from: &request)
                self.wholeReceived(request)
            case .garbage: self.answer(.raw("HTTP/1.1 400 Garbage\r\nContent-Length: 0\r\n\r\n").closing)
            }
        }
    }

    /// A server also accepts the absolute form (RFC 9112 §3.2.2).
    private func takeRoot(from request: inout ReceivedRequest) {
        guard let port = self.transport?.localAddress?.port else { return }
        for host in ["127.0.0.1", "localhost"] {
            let root = "http://\(host):\(port)/"
            if request.target.hasPrefix(root) { request.target = "/" + request.target.dropFirst(root.count) }
        }
    }

    private func headReceived(_ request: ReceivedRequest) {
        guard let route = self.shared.with({ $0.routes[request.path] }), route.isEarly else { return }
        self.wasEarly = true
        self.answer(route.script(request))
    }

    private func wholeReceived(_ request: ReceivedRequest) {
        let route = self.shared.with { $0.routes[request.path] }
        if !self.wasEarly {
            // First, because a script may tell the test that the request has arrived.
            self.note(request)
            return self.answer(route?.script(request) ?? .text("nothing here", status: 404))
        }
        self.wasEarly = false
        self.note(request)
    }

    private func note(_ request: ReceivedRequest) {
        let gates = self.shared.with { state -> [Gate] in
            state.requests.append(request)
            let count = state.requests.count
            let due = state.arrivals.filter { $0.count <= count }.map(\.gate)
            state.arrivals.removeAll { $0.count <= count }
            return due
        }
        for gate in gates { gate.open() }
    }

    // MARK: Steps

    private func answer(_ answer: Answer) {
        self.steps = answer.steps[...]
        self.isBusy = true
        self.run()
    }

    private func run() {
        while !self.isWaiting, let step = self.steps.popFirst() { self.perform(step) }
        guard !self.isWaiting, self.steps.isEmpty, self.isBusy else { return }
        self.isBusy = false
        // No recursion: the running loop serves the following requests.
        self.loop.execute { self.serve() }
    }

    private func perform(_ step: Answer.Step) {
        guard let transport = self.transport else { return }
        switch step {
        case .send(let bytes): bytes.withRawSpan { _ = transport.write($0) }
        case .open(let gate): gate.open()
        case .hang: self.isOver = true
        case .requireHTTP11, .refuse: break
        case .close:
            self.isOver = true
            transport.shutdownOutput()
        case .reset:
            self.isOver = true
            // After the output of this turn.
            self.loop.execute { self.transport?.reset() }
        case .cut:
            self.isOver = true
            self.isCutting = true
            transport.awaitProgress()
        case .stopReading(let gate):
            transport.pauseReading()
            self.onceOpen(gate) { $0.transport?.resumeReading() }
        case .wait(let gate):
            self.isWaiting = true
            self.onceOpen(gate) {
                $0.isWaiting = false
                $0.run()
            }
        }
    }

    private func onceOpen(_ gate: Gate, _ work: @escaping @Sendable (WebConnection) -> Void) {
        let loop = self.loop
        gate.whenOpen { loop.execute { work(self) } }
    }
}
