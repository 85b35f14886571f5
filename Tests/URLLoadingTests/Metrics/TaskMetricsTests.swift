import Foundation
import HTTPTransport
import StreamTransport
import Testing
import URLLoading

@Suite("Metrics of a task")
struct TaskMetricsTests {
    private static let beginning = TransactionSample.beginning

    @Test func transactionsAreKeptInOrder() throws {
        var record = TaskMetricsRecord(createdAt: Self.beginning, date: TransactionSample.date)
        for step in 1...3 {
            let timings = LocalTimings(fetchStart: TransactionSample.instant(step))
            record.add(try TransactionSample.record(.cache(timings)))
        }
        record.countRedirect()
        record.countRedirect()
        let metrics = record.metrics(completedAt: TransactionSample.instant(50))
        #expect(metrics.transactionMetrics.map { $0.steps[0] } == [1, 2, 3])
        #expect(metrics.redirectCount == 2)
        #expect(metrics.taskInterval == DateInterval(start: TransactionSample.date, duration: 0.5))
    }

    @Test func metricsAreEmptyBeforeTheStart() {
        let record = TaskMetricsRecord(createdAt: Self.beginning, date: TransactionSample.date)
        let metrics = record.metrics(completedAt: Self.beginning + .seconds(-1))
        #expect(metrics.transactionMetrics.isEmpty && metrics.redirectCount == 0)
        #expect(metrics.taskInterval.duration == 0)
    }

    @Test func firstTransactionsAndTheLastAreKept() throws {
        var record = TaskMetricsRecord(createdAt: Self.beginning, date: TransactionSample.date)
        for step in 1...1000 {
            let timings = LocalTimings(fetchStart: TransactionSample.instant(step))
            record.add(try TransactionSample.record(.cache(timings)))
        }
        let steps = record.metrics().transactionMetrics.map { $0.steps[0] }
        #expect(steps.count == TaskMetricsRecord.transactionLimit)
        #expect(steps.first == 1 && steps.dropLast().last == 255 && steps.last == 1000)
    }

    @Test func datesKeepTheOrderOfInstants() {
        let anchor = WallClockAnchor(at: Self.beginning, date: TransactionSample.date)
        let dates = (-5...5).map { anchor.date(of: Self.beginning + .microseconds($0)) }
        #expect(zip(dates, dates.dropFirst()).allSatisfy { $0 < $1 })
    }

    @Test func metricsEnumsHaveFoundationsRawValues() {
        typealias Fetch = URLSessionTaskMetrics.ResourceFetchType
        typealias Lookup = URLSessionTaskMetrics.DomainResolutionProtocol
        #expect([Fetch.unknown, .networkLoad, .serverPush, .localCache].map(\.rawValue) == [0, 1, 2, 3])
        #expect([Lookup.unknown, .udp, .tcp, .tls, .https].map(\.rawValue) == [0, 1, 2, 3, 4])
        // The numbers are those of the registry of TLS cipher suites.
        #expect(tls_ciphersuite_t.CHACHA20_POLY1305_SHA256.rawValue == 0x1303)
        #expect(tls_ciphersuite_t.ECDHE_RSA_WITH_AES_128_GCM_SHA256.rawValue == 0xC02F)
        #expect(tls_ciphersuite_t(rawValue: 0xFFFF) == nil)
    }
}
