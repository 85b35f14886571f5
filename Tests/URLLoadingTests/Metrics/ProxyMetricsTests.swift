import Foundation
import SessionTasks
import TestSupport
import Testing
import URLLoading

@Suite("Metrics of connections through proxies", .loading, .choosesItsConnections, .timeLimit(.minutes(20)))
struct ProxyMetricsTests {
    private func settings(_ prefix: String, _ host: String, _ port: Int) -> [AnyHashable: Any] {
        ["\(prefix)Enable": 1, "\(prefix)Proxy": host, "\(prefix)Port": port]
    }

    /// Opens a WebSocket, and gives the metrics of its only transaction.
    private func transaction(
        of url: URL, _ change: (URLSessionConfiguration) -> Void
    ) async throws -> URLSessionTaskTransactionMetrics {
        let recorder = ConnectionRecorder()
        let session = URLSession.test(recorder, change)
        let task = session.webSocketTask(with: url)
        task.resume()
        try await task.sendPing()
        task.cancel(with: .normalClosure, reason: nil)
        let metrics = try #require(try await recorder.end().metrics)
        session.invalidateAndCancel()
        return try #require(metrics.transactionMetrics.first)
    }

    private func expectDatesInOrder(
        _ transaction: URLSessionTaskTransactionMetrics, looksUp: Bool,
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        var dates = [transaction.fetchStartDate]
        if looksUp { dates += [transaction.domainLookupStartDate, transaction.domainLookupEndDate] }
        dates += [
            transaction.connectStartDate, transaction.connectEndDate, transaction.requestStartDate,
            transaction.requestEndDate, transaction.responseStartDate, transaction.responseEndDate,
        ]
        #expect(!dates.contains(nil), sourceLocation: sourceLocation)
        #expect(dates.compactMap(\.self) == dates.compactMap(\.self).sorted(), sourceLocation: sourceLocation)
        #expect((transaction.domainLookupStartDate != nil) == looksUp, sourceLocation: sourceLocation)
    }

    @Test(arguments: ["HTTP", "SOCKS"], ["127.0.0.1", "localhost"])
    func webSocketThroughAProxySaysSo(_ prefix: String, _ host: String) async throws {
        let server = try await ConnectionServer(WebSocketTaskTests.echo)
        let proxy = try await RelayProxy()
        let transaction = try await self.transaction(of: server.url()) {
            $0.connectionProxyDictionary = self.settings(prefix, host, proxy.port)
        }
        #expect(transaction.isProxyConnection && transaction.remotePort == proxy.port && proxy.tunnels == 1)
        #expect(transaction.remoteAddress == "127.0.0.1" && transaction.localAddress == "127.0.0.1")
        self.expectDatesInOrder(transaction, looksUp: host == "localhost")
    }

    /// The proxy has another address than the server.
    @Test(arguments: ConnectionVariant.all.filter { $0.route != .direct })
    func everyTransactionHasTheProxysAddress(_ variant: ConnectionVariant) async throws {
        let server = try await variant.server(["/": .redirect(to: "/there"), "/there": .text("hello")])
        let (proxy, authority) = (try await RelayProxy(at: 0x7F00_0002), Data(try Certificates.authority().pem.utf8))
        let notes = try await DataRecorder().run(server.url()) {
            $0.assumesHTTP2 = variant.version == .http2
            $0.certificateAuthorities = authority
            $0.connectionProxyDictionary = variant.settings(proxy.port, at: "127.0.0.2")
        }
        let transactions = try #require(notes.metrics?.transactionMetrics)
        #expect(transactions.map(\.isReusedConnection) == [false, true] && notes.data == Data("hello".utf8))
        for transaction in transactions {
            #expect(transaction.isProxyConnection && transaction.networkProtocolName == variant.version.rawValue)
            #expect(transaction.remoteAddress == "127.0.0.2" && transaction.remotePort == proxy.port)
            #expect(transaction.localAddress == "127.0.0.1" && transaction.localPort != nil)
            #expect(transaction.localPort == transactions[0].localPort)
        }
    }

    /// A connection per server, of which one is direct.
    @Test func redirectToAnExceptedServerHasItsAddress() async throws {
        let server = try await WebServer(["/": .text("hello")])
        let first = try await WebServer(["/": .redirect(to: "http://localhost:\(server.port)/")])
        let proxy = try await RelayProxy(at: 0x7F00_0002)
        let notes = try await DataRecorder().run(first.url()) {
            $0.connectionProxyDictionary = self.settings("HTTP", "127.0.0.2", proxy.port)
                .merging(["ExceptionsList": ["localhost"]]) { $1 }
        }
        let transactions = try #require(notes.metrics?.transactionMetrics)
        #expect(transactions.map(\.isProxyConnection) == [true, false])
        #expect(transactions.map(\.remoteAddress) == ["127.0.0.2", "127.0.0.1"])
        #expect(transactions.map(\.remotePort) == [proxy.port, server.port] && proxy.tunnels == 1)
    }

    @Test func webSocketWithoutAProxySaysSo() async throws {
        let server = try await ConnectionServer(WebSocketTaskTests.echo)
        let excepted = try await self.transaction(of: server.url()) {
            $0.connectionProxyDictionary = self.settings("HTTP", "localhost", 1)
                .merging(["ExceptionsList": ["127.0.0.1"]]) { $1 }
        }
        #expect(!excepted.isProxyConnection && excepted.remotePort == server.port)
        self.expectDatesInOrder(excepted, looksUp: false)
        let direct = try await self.transaction(of: server.url()) {
            var dead = ProxyConfiguration(httpCONNECTProxy: .hostPort(host: "localhost", port: 1))
            dead.allowFailover = true
            $0.proxyConfigurations = [dead]
        }
        #expect(!direct.isProxyConnection && direct.remotePort == server.port)
        self.expectDatesInOrder(direct, looksUp: false)
    }

    @Test func webSocketThroughTheNextProxySaysSo() async throws {
        let server = try await ConnectionServer(WebSocketTaskTests.echo)
        let proxy = try await RelayProxy()
        let port = try #require(NWEndpoint.Port(rawValue: UInt16(proxy.port)))
        let transaction = try await self.transaction(of: server.url()) {
            $0.proxyConfigurations = [
                ProxyConfiguration(httpCONNECTProxy: .hostPort(host: "localhost", port: 1)),
                ProxyConfiguration(socksv5Proxy: .hostPort(host: "127.0.0.1", port: port)),
            ]
        }
        #expect(transaction.isProxyConnection && transaction.remotePort == proxy.port)
        #expect(transaction.remoteAddress == "127.0.0.1")
        self.expectDatesInOrder(transaction, looksUp: false)
    }

    /// The proxy refuses names.
    @Test func refusedTunnelNamesTheProxy() async throws {
        let proxy = try await RelayProxy()
        let recorder = DataRecorder()
        let session = URLSession.test(recorder) {
            $0.connectionProxyDictionary = self.settings("HTTPS", "127.0.0.1", proxy.port)
        }
        session.dataTask(with: try #require(URL(string: "https://origin.example/"))).resume()
        let notes = try await recorder.end()
        let transaction = try #require(notes.metrics?.transactionMetrics.first)
        #expect(notes.error != nil && notes.metrics?.transactionMetrics.count == 1)
        #expect(transaction.isProxyConnection && transaction.remotePort == proxy.port)
        #expect(transaction.remoteAddress == "127.0.0.1" && transaction.localPort != nil)
        #expect(transaction.networkProtocolName == nil && !transaction.isReusedConnection)
        session.invalidateAndCancel()
    }

    @Test func failedHandshakeNamesTheServer() async throws {
        let server = try await WebServer(tls: try Certificates.server())
        let recorder = DataRecorder()
        let session = URLSession.test(recorder)
        session.dataTask(with: server.url()).resume()
        let notes = try await recorder.end()
        let transaction = try #require(notes.metrics?.transactionMetrics.first)
        #expect((notes.error as? URLError)?.code == .serverCertificateHasUnknownRoot)
        #expect(!transaction.isProxyConnection && transaction.remotePort == server.port)
        #expect(transaction.networkProtocolName == nil)
        session.invalidateAndCancel()
    }

    @Test func webSocketByTLSThroughAProxyIsMeasured() async throws {
        let context = try Certificates.server()
        let server = try await ConnectionServer { stream in
            try await stream.startSecureConnection(.init(context: context))
            try await WebSocketTaskTests.echo(stream)
        }
        let (proxy, authority) = (try await RelayProxy(), Data(try Certificates.authority().pem.utf8))
        let transaction = try await self.transaction(of: server.url("/", scheme: "wss")) {
            $0.certificateAuthorities = authority
            $0.connectionProxyDictionary = self.settings("HTTPS", "127.0.0.1", proxy.port)
        }
        #expect(transaction.isProxyConnection && transaction.negotiatedTLSProtocolVersion == .TLSv13)
        #expect(transaction.secureConnectionStartDate != nil && transaction.secureConnectionEndDate != nil)
        self.expectDatesInOrder(transaction, looksUp: false)
    }
}
