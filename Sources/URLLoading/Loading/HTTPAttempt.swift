import Foundation
import HTTPTransport
import TLSEngine

/// One exchange of a load, which may take several: what comes of it once the load has moved on is thrown away.
final class HTTPAttempt: @unchecked Sendable {
    /// Bytes of a content nobody wants that are read, so that its connection can be used again.
    private static let drainLimit = 64 << 10

    /// Broken when the load has moved on.
    private var load: HTTPLoad?
    private(set) var exchange: Exchange?
    private var drainedBytes = 0
    /// Whether its metrics are told.
    var isRecorded = false
    /// For metrics; `nil` where nobody wants them.
    let request: URLRequest?
    /// As they were sent.
    let head: RequestHead
    /// For the cache; `nil` where there is none.
    let startedAt: Date?
    var connection: ConnectionMetadata?

    /// What is being sent.
    let body: (any UploadBody)?

    init(_ load: HTTPLoad, request: URLRequest?, head: RequestHead, body: (any UploadBody)?, startedAt: Date?) {
        self.load = load
        self.request = request
        self.head = head
        self.body = body
        self.startedAt = startedAt
    }

    func start(_ order: consuming ExchangeRequest, in pool: ConnectionPool) {
        let exchange = pool.exchange(order, consumer: self)
        self.exchange = exchange
        self.body?.whenAvailable { exchange.bodyAvailable() }
        exchange.start()
    }

    /// Ends it; nothing more is heard.
    func stop() {
        self.load = nil
        self.exchange?.cancel()
        self.exchange = nil
        self.body?.close()
    }

    /// The load goes on with another: what little is left is read, much is cut off.
    func drain() {
        self.load = nil
        self.exchange?.pull(Self.drainLimit)
    }
}

extension HTTPAttempt: ExchangeConsumer {
    func connectionReady(_ facts: ConnectionMetadata) {
        self.connection = facts
    }

    func verificationRequested(
        _ request: VerificationRequest, answer: @escaping @Sendable (VerificationDecision) -> Void
    ) {
        guard let load = self.load else { return answer(.reject) }
        load.verify(request, answer: answer)
    }

    func identityRequested(issuers: [[UInt8]], answer: @escaping @Sendable (TLSIdentity?) -> Void) {
        guard let load = self.load else { return answer(nil) }
        load.chooseIdentity(issuers, answer: answer)
    }

    func bodySent(_ count: Int) {
        self.load?.bodySent(count)
    }

    func informationalHeadReceived(_ head: ResponseHead) {
        self.load?.informationalReceived(head, self)
    }

    func headReceived(_ head: ResponseHead, framing: ResponseFraming) {
        self.load?.headReceived(head, framing: framing, self)
    }

    func contentReceived(_ bytes: RawSpan) {
        guard let load = self.load else {
            self.drainedBytes += bytes.byteCount
            if self.drainedBytes >= Self.drainLimit { self.exchange?.cancel() }
            return
        }
        load.contentReceived(bytes)
    }

    func exchangeEnded(_ end: ExchangeEnd, metrics: ExchangeMetrics) {
        self.exchange = nil
        let load = self.load
        self.load = nil
        defer { self.body?.close() }
        if let load { return load.exchangeEnded(end, metrics: metrics, self) }
        if case .upgraded(let connection) = end { connection.close() }
    }
}

/// What a task sends, and how it is sent again.
enum TaskBody {
    case none
    case data(Data)
    case file(URL)
    /// - Parameter first: what the program gave for the first time; `nil` asks for it.
    case stream(first: InputStream?)

    /// Of the request itself: no bytes are no body.
    init(_ request: URLRequest) {
        switch request.body {
        case .none: self = .none
        case .data(let data): self = data.isEmpty ? .none : .data(data)
        case .stream(let stream): self = .stream(first: stream)
        }
    }

    var isNone: Bool {
        if case .none = self { true } else { false }
    }

    /// In bytes; -1 where it is not known.
    /// - Parameter request: whose Content-Length may tell that of a stream.
    func length(for request: URLRequest?) -> Int64 {
        switch self {
        case .none: 0
        case .data(let data): Int64(data.count)
        case .file(let url): Self.size(of: url) ?? NSURLSessionTransferSizeUnknown
        case .stream:
            request?.value(forHTTPHeaderField: "Content-Length").flatMap { Int64($0) }
                ?? NSURLSessionTransferSizeUnknown
        }
    }

    private static func size(of url: URL) -> Int64? {
        // Of what a link leads to: that is what is sent.
        var facts = stat()
        return stat(url.path, &facts) == 0 ? Int64(facts.st_size) : nil
    }
}
