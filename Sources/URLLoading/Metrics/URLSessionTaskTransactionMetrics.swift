import Foundation
import HTTPTransport
import TLSEngine

/// What one request with its response took. It does not change once made.
///
/// A date is `nil` where its step was not taken: nothing is looked up, connected or secured for a connection that is
/// used again, nor for what comes from the cache. Of a step that began and did not end, the end is `nil`, and so are all
/// dates that would come behind it.
open class URLSessionTaskTransactionMetrics: NSObject, @unchecked Sendable {
    private let record: TransactionRecord
    private let dates: TransactionDates

    init(_ record: TransactionRecord, _ anchor: WallClockAnchor) {
        self.record = record
        self.dates = record.dates(anchor)
        super.init()
    }

    /// Metrics of nothing.
    @available(*, deprecated, message: "Metrics are made by sessions.")
    public override init() {
        let request = URLRequest(url: URL(fileURLWithPath: "/dev/null", isDirectory: false))
        let nothing = TransactionRecord.Source.other(LocalTimings(fetchStart: .now))
        self.record = TransactionRecord(request: request, response: nil, source: nothing, decodedBytes: 0)
        self.dates = TransactionDates()
        super.init()
    }

    private var exchange: ExchangeMetrics? { self.record.exchange }
    private var connection: ConnectionFacts? { self.record.exchange?.connection }

    /// As it was sent.
    open var request: URLRequest { self.record.request }
    /// `nil` if none came.
    open var response: URLResponse? { self.record.response }

    /// When the resource was asked for, wherever it came from.
    open var fetchStartDate: Date? { self.dates.fetchStart }
    open var domainLookupStartDate: Date? { self.dates.lookupStart }
    open var domainLookupEndDate: Date? { self.dates.lookupEnd }
    open var connectStartDate: Date? { self.dates.connectStart }
    /// `nil` without TLS, as the end is.
    open var secureConnectionStartDate: Date? { self.dates.secureStart }
    open var secureConnectionEndDate: Date? { self.dates.secureEnd }
    /// With TLS, after its handshake.
    open var connectEndDate: Date? { self.dates.connectEnd }
    open var requestStartDate: Date? { self.dates.requestStart }
    /// When the last byte was handed to the system; where a whole response came before that, when it began.
    open var requestEndDate: Date? { self.dates.requestEnd }
    /// When the head was there.
    open var responseStartDate: Date? { self.dates.responseStart }
    /// When the last byte was there.
    open var responseEndDate: Date? { self.dates.responseEnd }

    /// By its ALPN name, as `http/1.1`; `nil` without a connection.
    open var networkProtocolName: String? { self.connection?.networkProtocol }
    open var isProxyConnection: Bool { false }
    /// Whether the connection served a request before.
    open var isReusedConnection: Bool { self.connection?.isReused ?? false }
    open var resourceFetchType: URLSessionTaskMetrics.ResourceFetchType { self.record.fetchType }
    open var domainResolutionProtocol: URLSessionTaskMetrics.DomainResolutionProtocol { .unknown }

    /// Bytes on the wire, above TLS, as in all counts up to `countOfResponseBodyBytesReceived`.
    open var countOfRequestHeaderBytesSent: Int64 { self.exchange?.requestHeadBytes ?? 0 }
    /// With the framing of chunks.
    open var countOfRequestBodyBytesSent: Int64 { self.exchange?.requestBodyBytes ?? 0 }
    /// Without framing.
    open var countOfRequestBodyBytesBeforeEncoding: Int64 { self.exchange?.requestContentBytes ?? 0 }
    /// Of all heads, the informational ones included.
    open var countOfResponseHeaderBytesReceived: Int64 { self.exchange?.responseHeadBytes ?? 0 }
    /// With the framing of chunks, and as the server coded it.
    open var countOfResponseBodyBytesReceived: Int64 { self.exchange?.responseBodyBytes ?? 0 }
    /// Without framing and content coding; also of what comes from the cache.
    open var countOfResponseBodyBytesAfterDecoding: Int64 { self.record.decodedBytes }

    /// In digits; `nil` without a connection, as the next three are.
    open var localAddress: String? { self.connection?.localHost }
    open var localPort: Int? { self.connection?.localPort }
    open var remoteAddress: String? { self.connection?.peerHost }
    open var remotePort: Int? { self.connection?.peerPort }

    /// `nil` without TLS.
    open var negotiatedTLSProtocolVersion: tls_protocol_version_t? {
        self.connection?.tls.flatMap { tls_protocol_version_t(rawValue: $0.version.rawValue) }
    }

    /// `nil` without TLS, and where the suite is one that `tls_ciphersuite_t` does not name.
    open var negotiatedTLSCipherSuite: tls_ciphersuite_t? {
        self.connection?.tls.flatMap { tls_ciphersuite_t(rawValue: $0.cipherIdentifier) }
    }

    /// What kind of network it is does not become known here, so the next three are always `false`.
    open var isCellular: Bool { false }
    open var isExpensive: Bool { false }
    open var isConstrained: Bool { false }
    /// Whether several paths were used at once; never here.
    open var isMultipath: Bool { false }

    open override var description: String {
        let status = (self.response as? HTTPURLResponse).map { " \($0.statusCode)" } ?? ""
        let text = "\(self.request.httpMethod ?? "GET") \(self.request.url?.absoluteString ?? "(null)")\(status)"
        return "<\(type(of: self))> { \(text), \(self.countOfResponseBodyBytesAfterDecoding) bytes }"
    }
}
