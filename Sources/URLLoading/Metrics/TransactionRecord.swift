import HTTPTransport

/// One request with its response, as the loader counted it.
package struct TransactionRecord: Sendable {
    package enum Source: Sendable, Hashable {
        case network(ExchangeMetrics)
        /// A response that was stored served as it was.
        case cache(LocalTimings)
        /// Neither: a `data` or `file` URL, or a `URLProtocol`.
        case other(LocalTimings)
    }

    package var request: URLRequest
    /// `nil` if none came.
    package var response: URLResponse?
    package var source: Source
    /// Bytes of the content after its content coding was undone.
    package var decodedBytes: Int64

    package init(request: URLRequest, response: URLResponse?, source: Source, decodedBytes: Int64) {
        self.request = request
        self.response = response
        self.source = source
        self.decodedBytes = decodedBytes
    }

    /// What the network gave, if it was asked.
    var exchange: ExchangeMetrics? {
        if case .network(let metrics) = self.source { metrics } else { nil }
    }

    func dates(_ anchor: WallClockAnchor) -> TransactionDates {
        switch self.source {
        case .network(let metrics): TransactionDates(metrics, anchor)
        case .cache(let timings), .other(let timings): TransactionDates(timings, anchor)
        }
    }

    var fetchType: URLSessionTaskMetrics.ResourceFetchType {
        switch self.source {
        case .network: .networkLoad
        case .cache: .localCache
        case .other: .unknown
        }
    }
}
