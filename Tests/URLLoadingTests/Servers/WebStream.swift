import ByteKernels
import HTTP2Engine
import StreamTransport

/// The HTTP/2 side of a `WebConnection`: its answers are those written for HTTP/1.1, in frames. Confined to its loop.
final class WebStreams: @unchecked Sendable {
    let engine: HTTP2Connection
    let loop: Loop
    private let transport: any Transport
    private let received: (inout ReceivedRequest) -> Answer
    private let early: (ReceivedRequest) -> Answer?
    private var streams: [HTTP2StreamID: WebStream] = [:]

    /// - Parameters:
    ///   - early: the response to a request whose head has arrived, or `nil`.
    ///   - received: the answer to a whole request.
    init?(
        _ transport: any Transport, early: @escaping (ReceivedRequest) -> Answer?,
        received: @escaping (inout ReceivedRequest) -> Answer
    ) {
        guard let engine = try? HTTP2Connection(.server) else { return nil }
        self.engine = engine
        self.transport = transport
        self.loop = transport.loop
        self.early = early
        self.received = received
    }

    func bytesReceived(_ bytes: RawSpan) {
        var offset = 0
        while let event = self.engine.nextEvent(in: bytes, from: &offset) {
            switch event {
            case .head(let id, let block, let isLast):
                let stream = WebStream(id, block, of: self)
                self.streams[id] = stream
                if let answer = self.early(stream.request) { stream.answer(answer) }
                if isLast { self.requestEnded(stream) }
            case .data(let id, let range): self.streams[id]?.bodyReceived([UInt8](bytes.extracting(range)))
            case .inputEnded(let id): if let stream = self.streams[id] { self.requestEnded(stream) }
            case .closed(let id, _): self.streams.removeValue(forKey: id)?.closed()
            default: break
            }
        }
        self.flush()
    }

    private func requestEnded(_ stream: WebStream) {
        let answer = self.received(&stream.request)
        if !stream.isAnswered { stream.answer(answer) }
    }

    func flush() {
        self.engine.write {
            _ = self.transport.write($0)
            return true
        }
    }

    func reset() { self.loop.execute { self.transport.reset() } }
}

/// One request of an HTTP/2 connection, and its answer. Confined to its loop.
final class WebStream: @unchecked Sendable {
    var request = ReceivedRequest()
    private(set) var isAnswered = false
    private let id: HTTP2StreamID
    private let streams: WebStreams
    private var translator: AnswerTranslator
    private var steps: ArraySlice<Answer.Step> = []
    private var isWaiting = false
    private var isClosed = false
    private var hasEnded = false
    /// Bytes of the body that are not returned to the window, as the answer requires.
    private var heldBack = 0
    private var isHoldingBack = false

    init(_ id: HTTP2StreamID, _ block: HTTP2FieldBlock, of streams: WebStreams) {
        self.id = id
        self.streams = streams
        var cookies: [String] = []
        for index in 0..<block.count {
            let name = String(decoding: block.name(at: index), as: UTF8.self)
            let value = String(decoding: block.value(at: index), as: UTF8.self)
            switch name {
            case ":method": self.request.method = value
            case ":path": self.request.target = value
            case ":authority": self.request.fields.append(("host", value))
            case ":scheme": break
            case "cookie": cookies.append(value)
            default: self.request.fields.append((name, value))
            }
        }
        // Crumbs are one field (RFC 9113 §8.2.3).
        if !cookies.isEmpty { self.request.fields.append(("cookie", cookies.joined(separator: "; "))) }
        self.translator = AnswerTranslator(hasContent: self.request.method != "HEAD")
    }

    func bodyReceived(_ bytes: [UInt8]) {
        self.request.bodyCount += bytes.count
        self.request.body += bytes.prefix(max(0, RequestReader.keptBody - self.request.body.count))
        if self.isHoldingBack {
            self.heldBack += bytes.count
        } else {
            self.streams.engine.consume(self.id, bytes.count)
        }
    }

    func closed() { self.isClosed = true }

    func answer(_ answer: Answer) {
        self.isAnswered = true
        self.steps = answer.steps[...]
        self.run()
    }

    private func run() {
        while !self.isWaiting, !self.isClosed, let step = self.steps.popFirst() { self.perform(step) }
        self.streams.flush()
    }

    private func perform(_ step: Answer.Step) {
        switch step {
        case .send(let bytes): for part in self.translator.add(bytes) { self.send(part) }
        case .open(let gate): gate.open()
        case .hang: self.isClosed = true
        case .requireHTTP11:
            self.isClosed = true
            self.streams.engine.reset(self.id, .http11Required)
        case .refuse:
            self.isClosed = true
            self.streams.engine.reset(self.id, .refusedStream)
        case .close:
            // Content that ends with the connection in HTTP/1.1 ends with the stream.
            if self.translator.isUntilClose { return self.send(.end(trailers: [])) }
            guard self.hasEnded else {
                // A reset discards output that is not in frames yet.
                self.streams.flush()
                return self.streams.engine.reset(self.id, .internalError)
            }
            self.streams.engine.goAway()
        case .reset, .cut: self.streams.reset()
        case .stopReading(let gate):
            self.isHoldingBack = true
            self.onceOpen(gate) {
                $0.isHoldingBack = false
                $0.streams.engine.consume($0.id, $0.heldBack)
                $0.streams.flush()
            }
        case .wait(let gate):
            self.isWaiting = true
            self.onceOpen(gate) {
                $0.isWaiting = false
                $0.run()
            }
        }
    }

    private func send(_ part: AnswerTranslator.Part) {
        let engine = self.streams.engine
        switch part {
        case .head(let status, let fields, let isLast):
            let block = HTTP2FieldBlock([(":status", "\(status)")] + fields)
            try? engine.respond(self.id, block, endsOutput: isLast)
            self.hasEnded = isLast
        case .body(let bytes): _ = try? engine.send(self.id, bytes.span.bytes)
        case .end(let trailers):
            self.hasEnded = true
            try? engine.endOutput(self.id, trailers: trailers.isEmpty ? nil : HTTP2FieldBlock(trailers))
        }
    }

    private func onceOpen(_ gate: Gate, _ work: @escaping @Sendable (WebStream) -> Void) {
        let loop = self.streams.loop
        gate.whenOpen { loop.execute { work(self) } }
    }
}

/// Reads the HTTP/1.1 bytes of an answer.
struct AnswerTranslator {
    enum Part {
        case head(Int, [(name: String, value: String)], isLast: Bool)
        case body([UInt8])
        case end(trailers: [(name: String, value: String)])
    }

    private enum Place {
        case head
        case length(Int)
        case chunkSize
        case chunk(Int)
        case chunkEnd
        case trailers([(name: String, value: String)])
        case ending
        case untilClose
        case done
    }

    private static let connectionFields: Set<String> = ["connection", "keep-alive", "transfer-encoding", "upgrade"]

    private let hasContent: Bool
    private var bytes: ArraySlice<UInt8> = []
    private var place = Place.head

    init(hasContent: Bool) {
        self.hasContent = hasContent
    }

    var isUntilClose: Bool {
        if case .untilClose = self.place { true } else { false }
    }

    mutating func add(_ more: [UInt8]) -> [Part] {
        self.bytes += more
        var parts: [Part] = []
        while let part = self.next() { parts.append(part) }
        return parts
    }

    private mutating func next() -> Part? {
        while true {
            switch self.place {
            case .head: return self.head()
            case .length(let left):
                guard let piece = self.take(left) else { return nil }
                self.place = piece.count == left ? .ending : .length(left - piece.count)
                return .body(piece)
            case .chunkSize:
                guard let line = self.line(), let size = Int(line.prefix { $0 != ";" }, radix: 16) else { return nil }
                self.place = size == 0 ? .trailers([]) : .chunk(size)
            case .chunk(let left):
                guard let piece = self.take(left) else { return nil }
                self.place = piece.count == left ? .chunkEnd : .chunk(left - piece.count)
                return .body(piece)
            case .chunkEnd:
                guard self.line() != nil else { return nil }
                self.place = .chunkSize
            case .trailers(let fields):
                guard let line = self.line() else { return nil }
                guard !line.isEmpty else {
                    self.place = .done
                    return .end(trailers: fields)
                }
                self.place = .trailers(fields + [Self.field(line)])
            case .ending:
                self.place = .done
                return .end(trailers: [])
            case .untilClose: return self.take(.max).map { .body($0) }
            case .done: return nil
            }
        }
    }

    private mutating func head() -> Part? {
        var lines: [String] = []
        let all = self.bytes
        while let line = self.line(), !line.isEmpty { lines.append(line) }
        // The two bytes before the rest are the empty line.
        guard let first = lines.first, all.prefix(all.count - self.bytes.count).suffix(4) == [13, 10, 13, 10] else {
            self.bytes = all
            return nil
        }
        let status = Int(first.split(separator: " ").dropFirst().first ?? "") ?? 500
        let fields = lines.dropFirst().map(Self.field)
        let kept = fields.filter { !Self.connectionFields.contains($0.name) }
        guard status >= 200 else { return .head(status, kept, isLast: false) }
        let length = fields.first { $0.name == "content-length" }.flatMap { Int($0.value) }
        if !self.hasContent || status == 204 || status == 304 || length == 0 {
            self.place = .done
            return .head(status, kept, isLast: true)
        }
        let isChunked = fields.contains { $0.name == "transfer-encoding" }
        self.place = isChunked ? .chunkSize : length.map { .length($0) } ?? .untilClose
        return .head(status, kept, isLast: false)
    }

    private static func field(_ line: String) -> (name: String, value: String) {
        let name = line.prefix { $0 != ":" }
        return (name.lowercased(), String(line.dropFirst(name.count + 1).drop { $0 == " " }))
    }

    private mutating func take(_ count: Int) -> [UInt8]? {
        guard !self.bytes.isEmpty else { return nil }
        let piece = self.bytes.prefix(count)
        self.bytes = self.bytes.dropFirst(piece.count)
        return Array(piece)
    }

    private mutating func line() -> String? {
        guard let end = self.bytes.firstIndex(of: 10), end > self.bytes.startIndex else { return nil }
        let line = self.bytes[self.bytes.startIndex..<(end - 1)]
        self.bytes = self.bytes[(end + 1)...]
        return String(decoding: line, as: UTF8.self)
    }
}
