import Foundation
import HTTPTransport
import StreamTransport
import TLSEngine

/// The metrics of a task from its creation to its completion. Immutable.
open class URLSessionTaskMetrics: NSObject, @unchecked Sendable {  // Not final; immutable.
    private let transactions: [URLSessionTaskTransactionMetrics]
    private let interval: DateInterval
    private let redirects: Int

    init(transactions: [URLSessionTaskTransactionMetrics], interval: DateInterval, redirectCount: Int) {
        self.transactions = transactions
        self.interval = interval
        self.redirects = redirectCount
        super.init()
    }

    /// Empty metrics.
    @available(*, deprecated, message: "Metrics are made by sessions.")
    public override init() {
        self.transactions = []
        self.interval = DateInterval(start: Date(), duration: 0)
        self.redirects = 0
        super.init()
    }

    /// One for each request in order, including those answered by a redirect, a challenge or the cache. Of more than
    /// 256 the first ones and the last.
    open var transactionMetrics: [URLSessionTaskTransactionMetrics] { self.transactions }
    /// From the task's creation to its completion.
    open var taskInterval: DateInterval { self.interval }
    /// Number of redirects followed.
    open var redirectCount: Int { self.redirects }

    open override var description: String {
        let transactions = self.transactions.map { "\n  \($0)" }.joined()
        return "<\(type(of: self))> { \(self.interval.duration) s, redirects: \(self.redirects) }\(transactions)"
    }
}

extension URLSessionTaskMetrics {
    /// The source of a response.
    public enum ResourceFetchType: Int, Sendable {
        /// A `data` or `file` URL, or a `URLProtocol`.
        case unknown = 0
        case networkLoad = 1
        /// Never reported.
        case serverPush = 2
        case localCache = 3
    }

    /// The protocol of name resolution.
    public enum DomainResolutionProtocol: Int, Sendable {
        /// Always reported: the system resolver does not tell which protocol it used.
        case unknown = 0
        case udp = 1
        case tcp = 2
        case tls = 3
        case https = 4
    }
}

/// The metrics of one request and its response. Immutable.
///
/// The date of a step that did not take place is `nil`: a reused connection or a cached response has no name lookup,
/// connecting and TLS handshake. If a step started and did not end, its end and all later dates are `nil`.
open class URLSessionTaskTransactionMetrics: NSObject, @unchecked Sendable {  // Not final; immutable.
    private let record: TransactionRecord
    private let dates: TransactionDates

    init(_ record: TransactionRecord, _ anchor: WallClockAnchor) {
        self.record = record
        self.dates = record.dates(anchor)
        super.init()
    }

    /// Empty metrics.
    @available(*, deprecated, message: "Metrics are made by sessions.")
    public override init() {
        let request = URLRequest(url: URL(fileURLWithPath: "/dev/null", isDirectory: false))
        let nothing = TransactionRecord.Source.other(LocalTimings(fetchStart: .now))
        self.record = TransactionRecord(request: request, response: nil, source: nothing, decodedBytes: 0)
        self.dates = TransactionDates()
        super.init()
    }

    private var exchange: ExchangeMetrics? { self.record.exchange }
    private var connection: ConnectionMetadata? { self.record.exchange?.connection }

    /// The request with the header fields that were sent.
    open var request: URLRequest { self.record.request }
    /// `nil` if none was received.
    open var response: URLResponse? { self.record.response }

    /// When the load started, from any source.
    open var fetchStartDate: Date? { self.dates.fetchStart }
    open var domainLookupStartDate: Date? { self.dates.lookupStart }
    open var domainLookupEndDate: Date? { self.dates.lookupEnd }
    open var connectStartDate: Date? { self.dates.connectStart }
    /// `nil` without TLS, as is the end.
    open var secureConnectionStartDate: Date? { self.dates.secureStart }
    open var secureConnectionEndDate: Date? { self.dates.secureEnd }
    /// Includes the TLS handshake.
    open var connectEndDate: Date? { self.dates.connectEnd }
    open var requestStartDate: Date? { self.dates.requestStart }
    /// When the kernel accepted the last byte; if a whole response arrived before that, its start.
    open var requestEndDate: Date? { self.dates.requestEnd }
    /// When the response head was received.
    open var responseStartDate: Date? { self.dates.responseStart }
    /// When the last byte was received.
    open var responseEndDate: Date? { self.dates.responseEnd }

    /// The ALPN name, `http/1.1` or `h2`; `nil` without a connection, and if TLS or the proxy's tunnel failed.
    open var networkProtocolName: String? { self.connection?.networkProtocol }
    /// Whether the connection leads to the server through a proxy. The remote address is then the proxy's.
    open var isProxyConnection: Bool { self.connection?.isProxied ?? false }
    /// Whether the connection had served another request.
    open var isReusedConnection: Bool { self.connection?.isReused ?? false }
    open var resourceFetchType: URLSessionTaskMetrics.ResourceFetchType { self.record.fetchType }
    open var domainResolutionProtocol: URLSessionTaskMetrics.DomainResolutionProtocol { .unknown }

    /// Bytes before encryption, as all counts up to `countOfResponseBodyBytesReceived`. Of HTTP/2: names and values before
    /// compression, and bodies without framing.
    open var countOfRequestHeaderBytesSent: Int64 { self.exchange?.requestHeadBytes ?? 0 }
    /// Includes chunked framing.
    open var countOfRequestBodyBytesSent: Int64 { self.exchange?.requestBodyBytes ?? 0 }
    /// Excludes framing.
    open var countOfRequestBodyBytesBeforeEncoding: Int64 { self.exchange?.requestContentBytes ?? 0 }
    /// Includes informational responses.
    open var countOfResponseHeaderBytesReceived: Int64 { self.exchange?.responseHeadBytes ?? 0 }
    /// Includes chunked framing and content coding.
    open var countOfResponseBodyBytesReceived: Int64 { self.exchange?.responseBodyBytes ?? 0 }
    /// Excludes framing and content coding. Also counts cached content.
    open var countOfResponseBodyBytesAfterDecoding: Int64 { self.record.decodedBytes }

    /// Numeric; `nil` without a connection, as are the next three.
    open var localAddress: String? { self.connection?.localHost }
    open var localPort: Int? { self.connection?.localPort }
    open var remoteAddress: String? { self.connection?.peerHost }
    open var remotePort: Int? { self.connection?.peerPort }

    /// `nil` without TLS.
    open var negotiatedTLSProtocolVersion: tls_protocol_version_t? {
        self.connection?.tls.flatMap { tls_protocol_version_t(rawValue: $0.version.rawValue) }
    }

    /// `nil` without TLS, or if `tls_ciphersuite_t` does not have the suite.
    open var negotiatedTLSCipherSuite: tls_ciphersuite_t? {
        self.connection?.tls.flatMap { tls_ciphersuite_t(rawValue: $0.cipherIdentifier) }
    }

    /// Whether the connection was opened over an interface of this class, as are the next two: a modem, or what the
    /// environment variable `URLLOADING_INTERFACES` declares. `false` without a connection.
    open var isCellular: Bool { self.path.classes.contains(.cellular) }
    open var isExpensive: Bool { self.path.classes.contains(.expensive) }
    open var isConstrained: Bool { self.path.classes.contains(.constrained) }
    /// Whether the connection used Multipath TCP when it was opened.
    open var isMultipath: Bool { self.path.isMultipath }
    private var path: ConnectionPath { self.connection?.path ?? ConnectionPath() }

    open override var description: String {
        let status = (self.response as? HTTPURLResponse).map { " \($0.statusCode)" } ?? ""
        let text = "\(self.request.httpMethod ?? "GET") \(self.request.url?.absoluteString ?? "(null)")\(status)"
        return "<\(type(of: self))> { \(text), \(self.countOfResponseBodyBytesAfterDecoding) bytes }"
    }
}

/// TLS cipher suites by their IANA numbers.
public enum tls_ciphersuite_t: UInt16, Sendable {
    case RSA_WITH_3DES_EDE_CBC_SHA = 0x000A
    case RSA_WITH_AES_128_CBC_SHA = 0x002F
    case RSA_WITH_AES_256_CBC_SHA = 0x0035
    case RSA_WITH_AES_128_CBC_SHA256 = 0x003C
    case RSA_WITH_AES_256_CBC_SHA256 = 0x003D
    case RSA_WITH_AES_128_GCM_SHA256 = 0x009C
    case RSA_WITH_AES_256_GCM_SHA384 = 0x009D
    case AES_128_GCM_SHA256 = 0x1301
    case AES_256_GCM_SHA384 = 0x1302
    case CHACHA20_POLY1305_SHA256 = 0x1303
    case ECDHE_ECDSA_WITH_3DES_EDE_CBC_SHA = 0xC008
    case ECDHE_ECDSA_WITH_AES_128_CBC_SHA = 0xC009
    case ECDHE_ECDSA_WITH_AES_256_CBC_SHA = 0xC00A
    case ECDHE_RSA_WITH_3DES_EDE_CBC_SHA = 0xC012
    case ECDHE_RSA_WITH_AES_128_CBC_SHA = 0xC013
    case ECDHE_RSA_WITH_AES_256_CBC_SHA = 0xC014
    case ECDHE_ECDSA_WITH_AES_128_CBC_SHA256 = 0xC023
    case ECDHE_ECDSA_WITH_AES_256_CBC_SHA384 = 0xC024
    case ECDHE_RSA_WITH_AES_128_CBC_SHA256 = 0xC027
    case ECDHE_RSA_WITH_AES_256_CBC_SHA384 = 0xC028
    case ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 = 0xC02B
    case ECDHE_ECDSA_WITH_AES_256_GCM_SHA384 = 0xC02C
    case ECDHE_RSA_WITH_AES_128_GCM_SHA256 = 0xC02F
    case ECDHE_RSA_WITH_AES_256_GCM_SHA384 = 0xC030
    case ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256 = 0xCCA8
    case ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256 = 0xCCA9
}
