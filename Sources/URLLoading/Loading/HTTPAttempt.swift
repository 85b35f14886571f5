import Foundation
import HTTPTransport
import TLSEngine
import WireText

/// One HTTP exchange of a load; redirects and challenges take several. Events after the load abandoned the exchange are
/// ignored.
final class HTTPAttempt: @unchecked Sendable {
    /// Bytes of unwanted content that are read so that the connection can be reused.
    private static let drainLimit = 64 << 10

    /// `nil` once the load has abandoned the exchange.
    private var load: HTTPLoad?
    private(set) var exchange: Exchange?
    private var drainedBytes = 0
    /// Whether its metrics were recorded.
    var isRecorded = false
    /// For metrics; `nil` if they are not collected.
    let request: URLRequest?
    /// The head that was sent.
    let head: RequestHead
    /// For the cache; `nil` without a cache.
    let startedAt: Date?
    let body: (any UploadBody)?

    init(_ load: HTTPLoad, request: URLRequest?, head: RequestHead, body: (any UploadBody)?, startedAt: Date?) {
        self.load = load
        self.request = request
        self.head = head
        self.body = body
        self.startedAt = startedAt
    }

    func start(_ request: consuming ExchangeRequest, in pool: ConnectionPool) {
        let exchange = pool.exchange(request, consumer: self)
        self.exchange = exchange
        self.body?.whenAvailable { exchange.bodyAvailable() }
        exchange.start()
    }

    func stop() {
        self.load = nil
        self.exchange?.cancel()
        self.exchange = nil
        self.body?.close()
    }

    /// Abandons the exchange: reads up to `drainLimit` bytes of its content, and cancels it if there are more.
    func drain() {
        self.load = nil
        self.exchange?.pull(Self.drainLimit)
    }
}

extension HTTPAttempt: ExchangeConsumer {
    func connectionReady(_ connection: ConnectionMetadata) {}

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
        self.load?.informationalReceived(head)
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

/// The body of a task's request.
enum TaskBody {
    case none
    case data(Data)
    case file(URL)
    /// - Parameter first: the stream to send first; `nil` asks the delegate for one.
    case stream(first: InputStream?)

    /// The body of the request itself; empty data count as no body.
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

    /// In bytes; -1 if unknown.
    /// - Parameter request: its Content-Length is the length of a stream.
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
        // Follows symbolic links, as reading the file does.
        var status = stat()
        return stat(url.path, &status) == 0 ? Int64(status.st_size) : nil
    }
}
