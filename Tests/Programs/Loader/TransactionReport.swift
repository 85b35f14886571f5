import Foundation
import URLLoading

/// The metrics of one transaction; dates in seconds since it was asked for.
struct TransactionReport: Encodable, Sendable {
    let url: String?
    let status: Int?
    let dates: [String: Double]
    let fetchType: Int
    let networkProtocol: String?
    let proxied: Bool
    let reused: Bool
    let requestHead: Int64
    let requestBody: Int64
    let requestContent: Int64
    let responseHead: Int64
    let responseBody: Int64
    let responseDecoded: Int64
    let localAddress: String?
    let localPort: Int?
    let remoteAddress: String?
    let remotePort: Int?
    let tls: UInt16?
    let cipher: UInt16?

    init(_ metrics: URLSessionTaskTransactionMetrics) {
        self.url = metrics.request.url?.absoluteString
        self.status = (metrics.response as? HTTPURLResponse)?.statusCode
        self.dates = Self.dates(metrics)
        self.fetchType = metrics.resourceFetchType.rawValue
        self.networkProtocol = metrics.networkProtocolName
        self.proxied = metrics.isProxyConnection
        self.reused = metrics.isReusedConnection
        self.requestHead = metrics.countOfRequestHeaderBytesSent
        self.requestBody = metrics.countOfRequestBodyBytesSent
        self.requestContent = metrics.countOfRequestBodyBytesBeforeEncoding
        self.responseHead = metrics.countOfResponseHeaderBytesReceived
        self.responseBody = metrics.countOfResponseBodyBytesReceived
        self.responseDecoded = metrics.countOfResponseBodyBytesAfterDecoding
        self.localAddress = metrics.localAddress
        self.localPort = metrics.localPort
        self.remoteAddress = metrics.remoteAddress
        self.remotePort = metrics.remotePort
        self.tls = metrics.negotiatedTLSProtocolVersion?.rawValue
        self.cipher = metrics.negotiatedTLSCipherSuite?.rawValue
    }

    private static func dates(_ metrics: URLSessionTaskTransactionMetrics) -> [String: Double] {
        let dates = [
            ("fetchStart", metrics.fetchStartDate), ("lookupStart", metrics.domainLookupStartDate),
            ("lookupEnd", metrics.domainLookupEndDate), ("connectStart", metrics.connectStartDate),
            ("secureStart", metrics.secureConnectionStartDate), ("secureEnd", metrics.secureConnectionEndDate),
            ("connectEnd", metrics.connectEndDate), ("requestStart", metrics.requestStartDate),
            ("requestEnd", metrics.requestEndDate), ("responseStart", metrics.responseStartDate),
            ("responseEnd", metrics.responseEndDate),
        ]
        guard let start = metrics.fetchStartDate else { return [:] }
        return dates.reduce(into: [:]) { result, one in
            if let date = one.1 { result[one.0] = date.timeIntervalSince(start) }
        }
    }
}
