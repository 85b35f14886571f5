import Foundation
import HTTPTransport
import Testing
import URLLoading

@Suite("Metrics of one transaction")
struct TransactionMetricsTests {
    @Test func datesOfATransactionAreInOrder() throws {
        let metrics = try TransactionSample.metrics(.network(TransactionSample.exchange))
        #expect(metrics.steps == Array(1...11))
        #expect(metrics.resourceFetchType == .networkLoad && !metrics.isReusedConnection)
        #expect(metrics.request.url?.absoluteString == "https://example.com/a")
        #expect((metrics.response as? HTTPURLResponse)?.statusCode == 200)
    }

    @Test func bytesAreCountedBeforeAndAfterDecoding() throws {
        let metrics = try TransactionSample.metrics(.network(TransactionSample.exchange))
        #expect(metrics.countOfRequestHeaderBytesSent == 100)
        #expect(metrics.countOfRequestBodyBytesSent == 30)
        #expect(metrics.countOfRequestBodyBytesBeforeEncoding == 20)
        #expect(metrics.countOfResponseHeaderBytesReceived == 200)
        #expect(metrics.countOfResponseBodyBytesReceived == 60)
        #expect(metrics.countOfResponseBodyBytesAfterDecoding == 500)
    }

    @Test func metricsNameBothEndsTheProtocolAndTheSecurity() throws {
        let metrics = try TransactionSample.metrics(.network(TransactionSample.exchange))
        #expect(metrics.networkProtocolName == "http/1.1")
        #expect(metrics.localAddress == "192.0.2.1" && metrics.localPort == 50_000)
        #expect(metrics.remoteAddress == "2001:db8::1" && metrics.remotePort == 443)
        #expect(metrics.negotiatedTLSProtocolVersion == .TLSv13)
        #expect(metrics.negotiatedTLSCipherSuite == .AES_128_GCM_SHA256)
    }

    @Test func cipherSuiteWithoutANameIsNil() throws {
        var exchange = try TransactionSample.exchange
        exchange.connection?.tls = TransactionSample.tls(cipher: 0x1304)  // TLS_AES_128_CCM_SHA256
        let metrics = try TransactionSample.metrics(.network(exchange))
        #expect(metrics.negotiatedTLSCipherSuite == nil && metrics.negotiatedTLSProtocolVersion == .TLSv13)
    }

    @Test func reusedConnectionHasNoOpeningDates() throws {
        var exchange = try TransactionSample.exchange
        exchange.connection?.isReused = true
        let metrics = try TransactionSample.metrics(.network(exchange))
        #expect(metrics.steps == [1, nil, nil, nil, nil, nil, nil, 8, 9, 10, 11])
        #expect(metrics.isReusedConnection && metrics.negotiatedTLSProtocolVersion == .TLSv13)
    }

    @Test func plainConnectionHasNoSecurityDates() throws {
        var exchange = try TransactionSample.exchange
        exchange.timings.secureStart = nil
        exchange.timings.secureEnd = nil
        exchange.connection?.tls = nil
        let metrics = try TransactionSample.metrics(.network(exchange))
        #expect(metrics.steps == [1, 2, 3, 4, nil, nil, 7, 8, 9, 10, 11])
        #expect(metrics.negotiatedTLSProtocolVersion == nil && metrics.negotiatedTLSCipherSuite == nil)
    }

    @Test func addressHasNoLookupDates() throws {
        var exchange = try TransactionSample.exchange
        exchange.timings.lookupStart = nil
        exchange.timings.lookupEnd = nil
        let metrics = try TransactionSample.metrics(.network(exchange))
        #expect(metrics.steps == [1, nil, nil, 4, 5, 6, 7, 8, 9, 10, 11])
    }

    /// How many instants of opening there are, and the steps that remain.
    @Test(
        arguments: [
            ("looking up was given up", 1, [1, 2, nil, nil, nil, nil, nil]),
            ("the name was not found", 2, [1, 2, nil, nil, nil, nil, nil]),
            ("connecting failed", 3, [1, 2, 3, 4, nil, nil, nil]),
            ("the handshake failed", 4, [1, 2, 3, 4, 5, nil, nil]),
        ] as [(String, Int, [Int?])])
    func metricsEndWithTheStepThatFailed(_ name: String, _ count: Int, _ steps: [Int?]) throws {
        var exchange = ExchangeMetrics(fetchStart: TransactionSample.instant(1))
        exchange.timings = TransactionSample.timings(first: count)
        let metrics = try TransactionSample.metrics(.network(exchange))
        #expect(metrics.steps == steps + [nil, nil, nil, nil], "\(name)")
        #expect(metrics.networkProtocolName == nil && metrics.remoteAddress == nil && metrics.remotePort == nil)
    }

    @Test func metricsEndWithTheUnfinishedRequest() throws {
        var exchange = try TransactionSample.exchange
        exchange.requestEnd = nil
        exchange.responseEnd = nil
        let metrics = try TransactionSample.metrics(.network(exchange))
        #expect(metrics.steps == [1, 2, 3, 4, 5, 6, 7, 8, nil, nil, nil])
    }

    @Test func earlyCompleteResponseEndsTheRequest() throws {
        var exchange = try TransactionSample.exchange
        exchange.requestEnd = nil
        let metrics = try TransactionSample.metrics(.network(exchange))
        #expect(metrics.steps == [1, 2, 3, 4, 5, 6, 7, 8, 10, 10, 11])
    }

    @Test func metricsEndWithTheBrokenResponse() throws {
        var exchange = try TransactionSample.exchange
        exchange.responseEnd = nil
        let metrics = try TransactionSample.metrics(.network(exchange))
        #expect(metrics.steps == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, nil])
    }

    @Test func cachedResponseHasFetchTypeLocalCache() throws {
        let timings = LocalTimings(
            fetchStart: TransactionSample.instant(1), responseStart: TransactionSample.instant(2),
            responseEnd: TransactionSample.instant(3))
        let metrics = try TransactionSample.metrics(.cache(timings))
        #expect(metrics.steps == [1, nil, nil, nil, nil, nil, nil, 1, 2, 2, 3])
        #expect(metrics.resourceFetchType == .localCache && metrics.countOfResponseBodyBytesAfterDecoding == 500)
        #expect(metrics.countOfResponseBodyBytesReceived == 0 && metrics.countOfRequestHeaderBytesSent == 0)
        #expect(metrics.networkProtocolName == nil && metrics.localAddress == nil && metrics.localPort == nil)
    }

    @Test func otherResponseHasFetchTypeUnknown() throws {
        let metrics = try TransactionSample.metrics(.other(LocalTimings(fetchStart: TransactionSample.instant(1))))
        #expect(metrics.steps == [1, nil, nil, nil, nil, nil, nil, 1, nil, nil, nil])
        #expect(metrics.resourceFetchType == .unknown && metrics.domainResolutionProtocol == .unknown)
        #expect(!metrics.isProxyConnection && !metrics.isCellular && !metrics.isExpensive)
        #expect(!metrics.isConstrained && !metrics.isMultipath)
    }
}
