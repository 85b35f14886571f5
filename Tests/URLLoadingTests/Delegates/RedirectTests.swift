import Foundation
import Testing
import URLLoading

@Suite("Redirects of tasks", .loading, .timeLimit(.minutes(20)))
struct RedirectTests {
    @Test func changeAPostIntoAGetWithoutItsBody() async throws {
        for status in [301, 302, 303] {
            let server = try await WebServer(["/": .redirect(status, to: "/there"), "/there": .text("hello")])
            let session = URLSession.test()
            let loaded = try await session.load(
                .to(server.url(), "POST", ["Content-Type": "a/b", "X-Mine": "1"], body: "foo=bar"))
            #expect(loaded.text == "hello" && loaded.response?.url == server.url("/there"))
            let heard = try #require(server.requests.last)
            #expect(heard.method == "GET" && heard.bodyCount == 0 && heard["X-Mine"] == "1")
            #expect(heard["Content-Type"] == nil && heard["Content-Length"] == nil)
            session.invalidateAndCancel()
        }
    }

    @Test(arguments: [307, 308], ["POST", "PUT", "DELETE", "PATCH"])
    func redirectKeepsMethodAndBody(_ status: Int, _ method: String) async throws {
        let server = try await WebServer(["/": .redirect(status, to: "/there"), "/there": .text("hello")])
        let session = URLSession.test()
        #expect(try await session.load(.to(server.url(), method, body: "a body")).text == "hello")
        let heard = try #require(server.requests.last)
        #expect(heard.method == method && heard.text == "a body" && heard.path == "/there")
        session.invalidateAndCancel()
    }

    /// A stream can be read once.
    @Test(arguments: [307, 308])
    func redirectDoesNotSendAStreamAgain(_ status: Int) async throws {
        let server = try await WebServer(["/": .redirect(status, to: "/there"), "/there": .text("hello")])
        let session = URLSession.test()
        var request = URLRequest.to(server.url(), "POST")
        request.httpBodyStream = InputStream(data: Data("a body".utf8))
        #expect(try await session.load(request).code == .requestBodyStreamExhausted)
        #expect(server.requests.map(\.text) == ["a body"])
        session.invalidateAndCancel()
    }

    @Test func bodyOfTheRequestThatTheDelegateChoseIsSent() async throws {
        for isStream in [false, true] {
            let server = try await WebServer(["/": .redirect(307, to: "/there"), "/there": .text("hello")])
            var policies = Policies()
            policies.redirect = { _, request, answer in
                var request = request
                if isStream {
                    request.httpBodyStream = InputStream(data: Data("another".utf8))
                } else {
                    request.httpBody = Data("another".utf8)
                }
                answer(request)
            }
            let recorder = DataRecorder(policies)
            let notes = try await recorder.run(.to(server.url(), "POST", body: "a body"))
            #expect(notes.error == nil && server.requests.map(\.text) == ["a body", "another"])
        }
    }

    @Test(arguments: [true, false])
    func cookieOfTheSessionStaysAtItsOrigin(_ isSame: Bool) async throws {
        let other = try await WebServer(["/there": .text("hello")])
        let server = try await WebServer(["/there": .text("hello")])
        server.on("/", .redirect(to: isSame ? "/there" : other.url("/there").absoluteString))
        let session = URLSession.test { $0.httpAdditionalHeaders = ["Cookie": "session=secret", "X-Kind": "test"] }
        #expect(try await session.load(server.url()).text == "hello")
        let heard = try #require((isSame ? server : other).requests.last)
        #expect(heard["Cookie"] == (isSame ? "session=secret" : nil) && heard["X-Kind"] == "test")
        session.invalidateAndCancel()
    }

    @Test func redirectSendsAFileAgain() async throws {
        let server = try await WebServer(["/": .redirect(307, to: "/there"), "/there": .text("hello")])
        let folder = try TemporaryFolder()
        let file = folder.url.appendingPathComponent("f")
        try Data(repeating: 5, count: 100_000).write(to: file)
        let session = URLSession.test()
        _ = try await session.upload(for: .to(server.url(), "PUT"), fromFile: file)
        #expect(server.requests.map(\.bodyCount) == [100_000, 100_000])
        session.invalidateAndCancel()
    }

    @Test(arguments: [
        ("UK", "/a/UK"), ("/UK", "/UK"), ("../UK?q=1", "/UK"), ("?param=foo", "/a/b"), ("./c/./d", "/a/c/d"),
    ])
    func locationIsResolvedAgainstTheRequest(_ location: String, _ path: String) async throws {
        let server = try await WebServer(["/a/b": .redirect(to: location)])
        server.on("/a/b") { $0.query.isEmpty ? .redirect(to: location) : .text("query \($0.query)") }
        server.on(path == "/a/b" ? "/none" : path) { .text("at \($0.target)") }
        let session = URLSession.test()
        let loaded = try await session.load(server.url("/a/b"))
        #expect(loaded.status == 200 && loaded.response?.url?.path == path)
        session.invalidateAndCancel()
    }

    @Test func locationWithoutAPortMeansTheDefaultPort() async throws {
        let server = try await WebServer(["/": .redirect(to: "http://127.0.0.1/elsewhere")])
        var policies = Policies()
        policies.redirect = { _, _, answer in answer(nil) }
        let recorder = DataRecorder(policies)
        let notes = try await recorder.run(server.url())
        #expect(notes.redirects.first?.request.url?.absoluteString == "http://127.0.0.1/elsewhere")
        #expect((notes.response as? HTTPURLResponse)?.statusCode == 302 && notes.error == nil)
    }

    @Test(.exceptForwarded) func redirectToAnUnreachableServerFails() async throws {
        let gone = try ClosedPort()
        let server = try await WebServer(["/": .redirect(to: gone.url().absoluteString)])
        let session = URLSession.test()
        #expect(try await session.load(server.url()).code == .cannotConnectToHost)
        session.invalidateAndCancel()
    }

    @Test(arguments: ["GET", "PUT", "POST", "HEAD"])
    func redirectsEndAfterTwenty(_ method: String) async throws {
        let server = try await WebServer()
        for count in 0...40 { server.on("/\(count)", .redirect(307, to: "/\(count + 1)")) }
        let recorder = DataRecorder()
        let notes = try await recorder.run(.to(server.url("/0"), method))
        let error = try #require(notes.error as? URLError)
        #expect(error.code == .httpTooManyRedirects && error.localizedDescription == "too many HTTP redirects")
        #expect(notes.redirects.count == 20 && notes.redirects.last?.request.url == server.url("/20"))
        #expect(error.failingURL == server.url("/20") && notes.response == nil && notes.data.isEmpty)
        #expect(server.requests.count == 21)
    }

    @Test func twentyRedirectsAreFollowed() async throws {
        let server = try await WebServer(["/20": .text("arrived")])
        for count in 0..<20 { server.on("/\(count)", .redirect(to: "/\(count + 1)")) }
        let session = URLSession.test()
        #expect(try await session.load(server.url("/0")).text == "arrived")
        session.invalidateAndCancel()
    }

    @Test func circleOfRedirectsEnds() async throws {
        let server = try await WebServer(["/a": .redirect(to: "/b"), "/b": .redirect(to: "/a")])
        let session = URLSession.test()
        #expect(try await session.load(server.url("/a")).code == .httpTooManyRedirects)
        session.invalidateAndCancel()
    }

    @Test func secretsAreNotSentToAnotherServer() async throws {
        let other = try await WebServer(["/": .text("other")])
        let server = try await WebServer(["/": .redirect(to: other.url("/").absoluteString)])
        let session = URLSession.test()
        let request = URLRequest.to(
            server.url(), "GET", ["Authorization": "Basic c2VjcmV0", "Cookie": "s=1", "X-Mine": "kept"])
        #expect(try await session.load(request).text == "other")
        let heard = try #require(other.requests.first)
        #expect(heard["Authorization"] == nil && heard["Cookie"] == nil && heard["X-Mine"] == "kept")
        #expect(heard["Host"] == "127.0.0.1:\(other.port)")
        #expect(server.requests.first?["Authorization"] == "Basic c2VjcmV0")
        session.invalidateAndCancel()
    }

    @Test func secretsAreSentToTheSameServer() async throws {
        let server = try await WebServer(["/": .redirect(to: "/there"), "/there": .text("hello")])
        let session = URLSession.test()
        _ = try await session.load(.to(server.url(), "GET", ["Authorization": "Basic c2VjcmV0"]))
        #expect(server.requests.last?["Authorization"] == "Basic c2VjcmV0")
        session.invalidateAndCancel()
    }

    @Test func passwordOfTheURLIsNotSentToAnotherHost() async throws {
        let other = try await WebServer()
        other.on("/") { _ in .text("no", ["WWW-Authenticate: Basic realm=\"r\""], status: 401) }
        let server = try await WebServer(["/": .redirect(to: other.url("/").absoluteString)])
        let url = try #require(URL(string: "\(server.scheme)://me:secret@127.0.0.1:\(server.port)/"))
        let session = URLSession.test()
        #expect(try await session.load(url).status == 401)
        #expect(other.requests.allSatisfy { $0["Authorization"] == nil })
        session.invalidateAndCancel()
    }

    private static let otherSchemes = [
        "ftp://127.0.0.1/", "file:///etc/passwd", "data:,secret", "javascript:1", "ssh://127.0.0.1/",
        "myapp://callback?code=1", "myapp:callback", "ws://127.0.0.1:9/", "wss://127.0.0.1:9/",
    ]

    @Test(arguments: Self.otherSchemes)
    func redirectToAnotherSchemeFailsAfterTheDelegateAllowedIt(_ location: String) async throws {
        let server = try await WebServer(["/": .redirect(to: location)])
        let recorder = DataRecorder()
        let notes = try await recorder.run(server.url())
        let error = notes.error as? URLError
        #expect(error?.code == .unsupportedURL && error?.failingURL == URL(string: location))
        #expect(notes.redirects.map(\.request.url) == [URL(string: location)])
        #expect(notes.data.isEmpty && notes.response == nil)
    }

    /// As a program that waits for the callback of OAuth does.
    @Test(arguments: Self.otherSchemes)
    func redirectToAnotherSchemeThatTheDelegateDeclinesIsTheResponse(_ location: String) async throws {
        let server = try await WebServer(["/": .redirect(to: location)])
        var policies = Policies()
        policies.redirect = { _, _, answer in answer(nil) }
        let recorder = DataRecorder(policies)
        let notes = try await recorder.run(server.url())
        #expect(notes.error == nil && notes.data == Data("moved".utf8))
        #expect((notes.response as? HTTPURLResponse)?.statusCode == 302)
        #expect(notes.redirects.map(\.request.url) == [URL(string: location)])
    }

    @Test func delegateCanReplaceARedirectToAnotherScheme() async throws {
        let server = try await WebServer(["/": .redirect(to: "myapp://callback"), "/mine": .text("mine")])
        var policies = Policies()
        let url = server.url("/mine")
        policies.redirect = { _, _, answer in answer(URLRequest(url: url)) }
        let recorder = DataRecorder(policies)
        let notes = try await recorder.run(server.url())
        #expect(notes.error == nil && notes.data == Data("mine".utf8))
    }

    @Test func redirectToAURLWithoutAHostFails() async throws {
        let server = try await WebServer(["/": .redirect(to: "http:///there")])
        let recorder = DataRecorder()
        let notes = try await recorder.run(server.url())
        #expect((notes.error as? URLError)?.code == .redirectToNonExistentLocation && notes.redirects.isEmpty)
    }

    @Test func redirectWithoutALocationIsTheResult() async throws {
        let server = try await WebServer()
        for status in [301, 302, 303, 307, 308] {
            server.on("/", .text("nowhere", status: status))
            let recorder = DataRecorder()
            let notes = try await recorder.run(server.url())
            #expect((notes.response as? HTTPURLResponse)?.statusCode == status && notes.redirects.isEmpty)
            #expect(notes.data == Data("nowhere".utf8) && notes.error == nil)
        }
    }

    @Test func delegateCanSendARedirectElsewhere() async throws {
        let server = try await WebServer(["/": .redirect(to: "/there"), "/mine": .text("mine")])
        var policies = Policies()
        let url = server.url("/mine")
        policies.redirect = { _, _, answer in answer(.to(url, "PUT", ["X-Mine": "1"], body: "own")) }
        let recorder = DataRecorder(policies)
        let notes = try await recorder.run(server.url())
        #expect(notes.data == Data("mine".utf8))
        #expect(server.requests.last?.method == "PUT" && server.requests.last?.text == "own")
    }

    @Test func redirectWaitsForTheDelegate() async throws {
        let server = try await WebServer(["/": .redirect(to: "/there"), "/there": .text("hello")])
        let kept = Outcome<@Sendable () -> Void>()
        var policies = Policies()
        policies.redirect = { _, request, answer in kept.give { answer(request) } }
        let recorder = DataRecorder(policies)
        let session = URLSession.test(recorder)
        session.dataTask(with: server.url()).resume()
        let goOn = try await kept.value()
        #expect(recorder.eventsOfTheTask == ["created", "redirect 302"] && server.requests.count == 1)
        goOn()
        #expect(try await recorder.end().data == Data("hello".utf8))
        session.invalidateAndCancel()
    }

    @Test func redirectIsReportedForTasksWithAHandler() async throws {
        let server = try await WebServer(["/": .redirect(to: "/there"), "/there": .text("hello")])
        let recorder = DataRecorder()
        let session = URLSession.test(recorder)
        #expect(try await session.load(server.url()).text == "hello")
        #expect(recorder.notes.redirects.first?.request.url == server.url("/there"))
        #expect(recorder.eventsOfTheTask.prefix(2) == ["created", "redirect 302"])
        #expect(recorder.log.count("response 200") + recorder.log.count("data") + recorder.log.count("complete") == 0)
        session.invalidateAndCancel()
    }
}
