import ControlAPI
import Foundation
import URLLoading
import WireText

extension TransferResponse {
    init(_ response: HTTPURLResponse) {
        let headers = response.allHeaderFields.map { name, value in
            let name = "\(name)"
            return Header {
                $0.name = name
                $0.value = CredentialName.matches(name) ? CredentialName.hiddenValue : "\(value)"
            }
        }
        self.init {
            $0.status = response.statusCode
            $0.headers = headers.sorted { $0.name.lowercased() < $1.name.lowercased() }
            $0.mediaType = response.mimeType
        }
    }
}

extension TransferMetrics {
    init(_ metrics: URLSessionTaskMetrics) {
        self.init {
            $0.durationMs = metrics.taskInterval.duration.wireMilliseconds
            $0.redirects = metrics.redirectCount
            $0.transactions = metrics.transactionMetrics.map { TransferTransaction($0) }
        }
    }
}

extension TransferTransaction {
    fileprivate init(_ metrics: URLSessionTaskTransactionMetrics) {
        func span(_ from: Date?, _ to: Date?) -> Double? {
            guard let from, let to else { return nil }
            return to.timeIntervalSince(from).wireMilliseconds
        }
        func place(_ host: String?, _ port: Int?) -> String? {
            guard let host, let port else { return nil }
            return host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
        }
        self.init {
            $0.method = metrics.request.httpMethod ?? "GET"
            $0.url = metrics.request.url?.absoluteString ?? ""
            $0.status = (metrics.response as? HTTPURLResponse)?.statusCode
            $0.protocol = metrics.networkProtocolName
            $0.reusedConnection = metrics.isReusedConnection
            $0.localAddress = place(metrics.localAddress, metrics.localPort)
            $0.remoteAddress = place(metrics.remoteAddress, metrics.remotePort)
            switch metrics.negotiatedTLSProtocolVersion {
            case .TLSv12?: $0.tlsVersion = "TLS 1.2"
            case .TLSv13?: $0.tlsVersion = "TLS 1.3"
            default: break
            }
            $0.lookupMs = span(metrics.domainLookupStartDate, metrics.domainLookupEndDate)
            $0.connectMs = span(metrics.connectStartDate, metrics.connectEndDate)
            $0.secureMs = span(metrics.secureConnectionStartDate, metrics.secureConnectionEndDate)
            $0.requestMs = span(metrics.requestStartDate, metrics.requestEndDate)
            $0.responseAfterMs = span(metrics.requestStartDate, metrics.responseStartDate)
            $0.responseMs = span(metrics.responseStartDate, metrics.responseEndDate)
            $0.sentBytes = metrics.countOfRequestHeaderBytesSent + metrics.countOfRequestBodyBytesSent
            $0.receivedBytes = metrics.countOfResponseHeaderBytesReceived + metrics.countOfResponseBodyBytesReceived
        }
    }
}

extension TimeInterval {
    /// Milliseconds, rounded to the microsecond.
    fileprivate var wireMilliseconds: Double { (self * 1_000_000).rounded() / 1000 }
}
