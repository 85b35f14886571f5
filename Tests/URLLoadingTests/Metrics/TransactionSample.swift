import Foundation
import HTTPTransport
import StreamTransport
import TLSEngine
import Testing
import URLLoading

/// An exchange over a new TLS connection whose every step took ten milliseconds.
enum TransactionSample {
    static let beginning = ContinuousInstant.now
    /// The date of `beginning`.
    static let date = Date(timeIntervalSinceReferenceDate: 800_000_000)

    static func instant(_ step: Int) -> ContinuousInstant { self.beginning + .milliseconds(10 * step) }

    static var exchange: ExchangeMetrics {
        get throws {
            var metrics = ExchangeMetrics(fetchStart: self.instant(1))
            metrics.timings = self.timings()
            metrics.connection = try self.connection
            metrics.requestStart = self.instant(8)
            metrics.requestEnd = self.instant(9)
            metrics.responseStart = self.instant(10)
            metrics.responseEnd = self.instant(11)
            metrics.requestHeadBytes = 100
            metrics.requestBodyBytes = 30
            metrics.requestContentBytes = 20
            metrics.responseHeadBytes = 200
            metrics.responseBodyBytes = 60
            metrics.responseContentBytes = 50
            return metrics
        }
    }

    /// The first `count` instants of opening.
    static func timings(first count: Int = 6) -> ConnectTimings {
        var timings = ConnectTimings()
        if count > 0 { timings.lookupStart = self.instant(2) }
        if count > 1 { timings.lookupEnd = self.instant(3) }
        if count > 2 { timings.connectStart = self.instant(4) }
        if count > 3 { timings.secureStart = self.instant(5) }
        if count > 4 { timings.secureEnd = self.instant(6) }
        if count > 5 { timings.connectEnd = self.instant(7) }
        return timings
    }

    static var connection: ConnectionMetadata {
        get throws {
            var metadata = ConnectionMetadata()
            metadata.localAddress = SocketAddress(literal: "192.0.2.1", port: 50_000)
            metadata.peerAddress = SocketAddress(literal: "2001:db8::1", port: 443)
            metadata.tls = self.tls(cipher: 0x1301)
            metadata.timings = self.timings()
            return metadata
        }
    }

    static func tls(cipher: UInt16) -> TLSMetadata {
        TLSMetadata(
            version: .tls13, cipherName: "TLS_AES_128_GCM_SHA256", cipherIdentifier: cipher,
            applicationProtocol: "http/1.1", serverName: "example.com", peerChain: [], resumed: false)
    }

    static func record(_ source: TransactionRecord.Source) throws -> TransactionRecord {
        let url = try #require(URL(string: "https://example.com/a"))
        let response = HTTPURLResponse(url: url, statusCode: 200, httpVersion: "HTTP/1.1", headerFields: nil)
        return TransactionRecord(request: URLRequest(url: url), response: response, source: source, decodedBytes: 500)
    }

    /// The metrics of a task that has this one transaction.
    static func metrics(_ source: TransactionRecord.Source) throws -> URLSessionTaskTransactionMetrics {
        var record = TaskMetricsRecord(createdAt: self.beginning, date: self.date)
        record.add(try self.record(source))
        return try #require(record.metrics(completedAt: self.instant(12)).transactionMetrics.first)
    }
}

extension URLSessionTaskTransactionMetrics {
    /// The dates in the order of their steps, in steps since the beginning.
    var steps: [Int?] {
        let dates = [
            self.fetchStartDate, self.domainLookupStartDate, self.domainLookupEndDate, self.connectStartDate,
            self.secureConnectionStartDate, self.secureConnectionEndDate, self.connectEndDate, self.requestStartDate,
            self.requestEndDate, self.responseStartDate, self.responseEndDate,
        ]
        return dates.map { date in
            date.map { Int(($0.timeIntervalSince(TransactionSample.date) * 100).rounded()) }
        }
    }
}
