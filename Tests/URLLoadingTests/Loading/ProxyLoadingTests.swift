import Foundation
import Testing
import URLLoading

/// A server of the tests is the proxy: it gets requests in absolute form, and after CONNECT it plays the server.
@Suite("Loading through a proxy", .loading, .timeLimit(.minutes(20)))
struct ProxyLoadingTests {
    private static func settings(_ proxy: WebServer, _ more: [AnyHashable: Any] = [:]) -> [AnyHashable: Any] {
        let settings: [AnyHashable: Any] = [
            "HTTPEnable": 1, "HTTPProxy": "127.0.0.1", "HTTPPort": proxy.port, "HTTPSEnable": 1,
            "HTTPSProxy": "127.0.0.1", "HTTPSPort": proxy.port,
        ]
        return settings.merging(more) { $1 }
    }

    private static var credential: [AnyHashable: Any] {
        ["kCFProxyUsernameKey": "ada", "kCFProxyPasswordKey": "secret"]
    }

    private func url(_ text: String) throws -> URL { try #require(URL(string: text)) }

    @Test func requestIsForwardedInAbsoluteForm() async throws {
        let proxy = try await WebServer(["http://origin.example/a": .text("through")])
        let recorder = DataRecorder()
        let session = URLSession.test(recorder) {
            $0.connectionProxyDictionary = Self.settings(proxy, Self.credential)
        }
        session.dataTask(with: try self.url("http://origin.example/a?b")).resume()
        let notes = try await recorder.end()
        #expect(notes.data == Data("through".utf8))
        let heard = try #require(proxy.requests.first)
        #expect(heard.target == "http://origin.example/a?b" && heard["Host"] == "origin.example")
        #expect(heard["Proxy-Authorization"] == "Basic YWRhOnNlY3JldA==")
        let transaction = try #require(notes.metrics?.transactionMetrics.last)
        #expect(transaction.isProxyConnection && transaction.remotePort == Int(proxy.port))
        session.invalidateAndCancel()
    }

    @Test func hostsOfAProxyShareNoConnection() async throws {
        let proxy = try await WebServer(["http://a.example/": .text("a"), "http://b.example/": .text("b")])
        let session = URLSession.test { $0.connectionProxyDictionary = Self.settings(proxy) }
        for (host, text) in [("a", "a"), ("b", "b"), ("a", "a")] {
            #expect(try await session.load(self.url("http://\(host).example/")).text == text)
        }
        #expect(proxy.connections == 2)
        session.invalidateAndCancel()
    }

    @Test func exceptionIsReachedDirectly() async throws {
        let server = try await WebServer(["/": .text("direct")])
        let proxy = try await WebServer()
        let session = URLSession.test {
            $0.connectionProxyDictionary = Self.settings(proxy, ["ExceptionsList": ["127.0.0.1"]])
        }
        #expect(try await session.load(server.url()).text == "direct" && proxy.connections == 0)
        session.invalidateAndCancel()
    }

    @Test func streamTaskGoesThroughATunnel() async throws {
        let proxy = try await WebServer(["/inside": .text("the server")])
        proxy.on("origin.example:7") { $0.method == "CONNECT" ? .head(200) : .close }
        let session = URLSession.test {
            $0.connectionProxyDictionary = Self.settings(proxy, Self.credential)
        }
        let task = session.streamTask(withHostName: "origin.example", port: 7)
        task.resume()
        try await task.write(Data("GET /inside HTTP/1.1\r\nHost: x\r\n\r\n".utf8), timeout: 60)
        let (data, _) = try await task.readData(ofMinLength: 60, maxLength: 10_000, timeout: 60)
        #expect(String(decoding: data ?? Data(), as: UTF8.self).contains("the server"))
        #expect(proxy.requests.map(\.target) == ["origin.example:7", "/inside"] && proxy.connections == 1)
        #expect(proxy.requests.map { $0["Proxy-Authorization"] } == ["Basic YWRhOnNlY3JldA==", nil])
        session.invalidateAndCancel()
    }

    @Test func webSocketAsksForATunnelWithoutTLSToo() async throws {
        let proxy = try await WebServer()
        proxy.on("origin.example:80", .text("no tunnels today", status: 403))
        let session = URLSession.test { $0.connectionProxyDictionary = Self.settings(proxy) }
        let task = session.webSocketTask(with: try self.url("ws://origin.example/"))
        task.resume()
        let error = await #expect(throws: URLError.self) { try await task.receive() }
        #expect(error?.localizedDescription.contains("no tunnels today") == true)
        #expect(proxy.requests.first?.method == "CONNECT")
        session.invalidateAndCancel()
    }

    @Test func refusedTunnelIsAnErrorWithTheProxysWords() async throws {
        let proxy = try await WebServer()
        proxy.on("origin.example:443", .text("not from here", status: 403))
        let session = URLSession.test { $0.connectionProxyDictionary = Self.settings(proxy) }
        let error = try await session.load(self.url("https://origin.example/")).error as? URLError
        #expect(error?.code == .cannotConnectToHost)
        #expect(error?.localizedDescription.contains("403") == true)
        #expect(error?.localizedDescription.contains("not from here") == true)
        session.invalidateAndCancel()
    }

    @Test func refusedCredentialIsNotOfferedAgain() async throws {
        let proxy = try await WebServer()
        proxy.on("origin.example:443", .text("", ["Proxy-Authenticate: Basic realm=\"p\""], status: 407))
        let session = URLSession.test {
            $0.connectionProxyDictionary = Self.settings(proxy, Self.credential)
        }
        #expect(try await session.load(self.url("https://origin.example/")).code == .userAuthenticationRequired)
        #expect(proxy.requests.count == 1)
        session.invalidateAndCancel()
    }

    @Test func proxyThatIsNotThereIsAnErrorThatSaysSo() async throws {
        let session = URLSession.test {
            $0.connectionProxyDictionary = ["HTTPEnable": 1, "HTTPProxy": "127.0.0.1", "HTTPPort": 1]
        }
        let error = try await session.load(self.url("http://origin.example/")).error as? URLError
        #expect(error?.code == .cannotConnectToHost && error?.localizedDescription.contains("proxy") == true)
        session.invalidateAndCancel()
    }

    @Test func addressesThatAreNotPermittedAreNotReachedThroughAProxyEither() async throws {
        let proxy = try await WebServer()
        let session = URLSession.test {
            $0.connectionProxyDictionary = Self.settings(proxy)
            $0.permitsAddress = { address, host in host == "127.0.0.1" || !address.isPrivate }
        }
        #expect(try await session.load(self.url("https://10.0.0.1/")).error != nil && proxy.requests.isEmpty)
        session.invalidateAndCancel()
    }
}
