import Foundation
import Testing
import URLLoading

@Suite("Fields of requests on the wire", .loading, .timeLimit(.minutes(20)))
struct RequestFieldTests {
    @Test func requestsFieldsGoBeforeTheSessions() async throws {
        let server = try await WebServer(["/": .text("hello")])
        let session = URLSession.test {
            $0.httpAdditionalHeaders = ["header2": "svalue2", "header3": "svalue3", "header4": "svalue4"]
        }
        let own = ["header1": "rvalue1", "header2": "rvalue2", "Header4": "rvalue4"]
        _ = try await session.load(.to(server.url(), "POST", own))
        let heard = try #require(server.requests.first)
        #expect(heard.head.contains("header1: rvalue1\n") && heard.head.contains("header2: rvalue2\n"))
        // HTTP/2 has names in lower case (RFC 9113 §8.2.1).
        let name = WebProtocol.current == .http1 ? "Header4" : "header4"
        #expect(heard.head.contains("header3: svalue3\n") && heard.head.contains("\(name): rvalue4\n"))
        #expect(!heard.head.contains("header4: svalue"))
        session.invalidateAndCancel()
    }

    @Test func requestHasTheRequiredFields() async throws {
        let server = try await WebServer()
        let session = URLSession.test()
        _ = try await session.load(server.url("/a%20b/c?d=e%26f#g"))
        let heard = try #require(server.requests.first)
        #expect(heard.target == "/a%20b/c?d=e%26f" && heard["Host"] == "127.0.0.1:\(server.port)")
        #expect(heard["Accept-Encoding"]?.contains("gzip") == true && heard["User-Agent"] != nil)
        #expect(heard["Accept"] == "*/*" && heard["Accept-Language"] != nil)
        _ = try await session.load(
            .to(server.url(), "GET", ["Accept": "a/b", "User-Agent": "me", "Accept-Encoding": "identity"]))
        let other = try #require(server.requests.last)
        #expect(other["Accept"] == "a/b" && other["User-Agent"] == "me" && other["Accept-Encoding"] == "identity")
        // A part of coded content cannot be decoded.
        _ = try await session.load(.to(server.url(), "GET", ["range": "bytes=5-"]))
        #expect(server.requests.last?["Accept-Encoding"] == "identity")
        session.invalidateAndCancel()
    }

    /// RFC 3986 §3.2.2, RFC 5891 and RFC 6874.
    @Test(
        .onlyWithHTTP11, .choosesItsConnections,
        arguments: [
            ("http://bücher.example/", "xn--bcher-kva.example"),
            ("http://b%C3%BCcher.example/", "xn--bcher-kva.example"),
            ("http://xn--bcher-kva.example/", "xn--bcher-kva.example"), ("http://EXAMPLE.test/", "example.test"),
            ("http://a_b-c.example/", "a_b-c.example"), ("http://[fe80::1%25lo]/", "[fe80::1]"),
            ("http://[FE80::1]:81/", "[fe80::1]:81"),
        ])
    func hostIsSentAsNetworksKnowIt(_ url: String, _ host: String) async throws {
        let proxy = try await WebServer(["/": .text("through")])
        let session = URLSession.test {
            $0.connectionProxyDictionary = [
                "HTTPEnable": 1, "HTTPProxy": "127.0.0.1", "HTTPPort": Int(proxy.port),
            ]
        }
        _ = try await session.load(try #require(URL(string: url)))
        #expect(proxy.requests.first?["Host"] == host)
        #expect(proxy.requests.first?.target == "http://\(host)/")
        session.invalidateAndCancel()
    }

    /// As on other platforms: programs count characters where they mean bytes.
    @Test(arguments: [("PUT", "grüße"), ("POST", "a"), ("GET", nil)])
    func lengthOfTheBodyReplacesTheFieldOfTheProgram(_ method: String, _ body: String?) async throws {
        let server = try await WebServer(["/": .text("ok")])
        let session = URLSession.test()
        let loaded = try await session.load(.to(server.url(), method, ["content-length": "5"], body: body))
        #expect(loaded.text == "ok" && loaded.error == nil)
        let sent = try #require(server.requests.first)
        #expect(sent.values("Content-Length") == (body.map { ["\($0.utf8.count)"] } ?? []))
        #expect(sent.text == body ?? "")
        session.invalidateAndCancel()
    }

    @Test(arguments: ["GET", "HEAD", "DELETE", "POST"])
    func lengthOfNoBodyIsSent(_ method: String) async throws {
        let server = try await WebServer(["/": .text("ok")])
        let session = URLSession.test()
        let loaded = try await session.load(.to(server.url(), method, ["Content-Length": "0"]))
        #expect(loaded.status == 200 && loaded.error == nil)
        let sent = try #require(server.requests.first)
        #expect(sent.values("Content-Length") == ["0"] && sent.bodyCount == 0)
        session.invalidateAndCancel()
    }

    @Test func urlWithoutAPathRequestsTheRoot() async throws {
        let server = try await WebServer(["/": .text("root")])
        let session = URLSession.test()
        for text in ["\(server.scheme)://127.0.0.1:\(server.port)", "\(server.scheme)://127.0.0.1:\(server.port)?q=1"] {
            #expect(try await session.load(try #require(URL(string: text))).text == "root")
        }
        #expect(server.requests.map(\.target) == ["/", "/?q=1"])
        session.invalidateAndCancel()
    }

    @Test func anyMethodIsSent() async throws {
        let server = try await WebServer(["/": .text("hello")])
        let session = URLSession.test()
        for method in ["OPTIONS", "PROPFIND", "PATCH", "custom"] {
            #expect(try await session.load(.to(server.url(), method)).text == "hello")
            #expect(server.requests.last?.method == method)
        }
        session.invalidateAndCancel()
    }

    @Test func expectedContinueIsAwaited() async throws {
        let server = try await WebServer()
        server.onHead("/") { _ in Answer.head(100).then(.text("taken")) }
        let session = URLSession.test()
        let loaded = try await session.load(.to(server.url(), "PUT", ["Expect": "100-continue"], body: "a body"))
        #expect(loaded.text == "taken" && loaded.error == nil)
        session.invalidateAndCancel()
    }

    /// RFC 9110 §10.1.1.
    @Test func refusedExpectationIsLeftOut() async throws {
        let server = try await WebServer()
        let expected = EventLog()
        server.onHead("/") { request in
            expected.add(request["Expect"] ?? "nothing")
            return request["Expect"] == nil ? .text("taken") : .text("no", status: 417)
        }
        let session = URLSession.test()
        let loaded = try await session.load(.to(server.url(), "PUT", ["Expect": "100-continue"], body: "a body"))
        #expect(loaded.text == "taken" && expected.names == ["100-continue", "nothing"])
        // It is the session's field, not the request's.
        let other = URLSession.test { $0.httpAdditionalHeaders = ["Expect": "100-continue"] }
        #expect(try await other.load(.to(server.url(), "PUT", body: "a body")).status == 417)
        session.invalidateAndCancel()
        other.invalidateAndCancel()
    }
}
