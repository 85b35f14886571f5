import Foundation
import Testing
import URLLoading

@Suite("Data tasks", .loading, .timeLimit(.minutes(20)))
struct DataTaskTests {
    @Test func dataTaskLoadsByURLAndByRequest() async throws {
        let server = try await WebServer(["/Nepal": .text("Kathmandu")])
        let session = URLSession.test()
        for loaded in [
            try await session.load(server.url("/Nepal")), try await session.load(.to(server.url("/Nepal"), "GET")),
        ] {
            #expect(loaded.text == "Kathmandu" && loaded.status == 200 && loaded.error == nil)
            #expect(loaded.response?.url == server.url("/Nepal") && loaded.response?.mimeType == "text/plain")
            #expect(loaded.response?.expectedContentLength == 9)
        }
        session.invalidateAndCancel()
    }

    @Test func taskWithoutHandlerReportsToTheDelegate() async throws {
        let server = try await WebServer(["/Peru": .text("Lima")])
        let recorder = DataRecorder()
        let notes = try await recorder.run(server.url("/Peru"))
        #expect(notes.data == Data("Lima".utf8) && notes.error == nil && notes.completions == 1)
        #expect(notes.stateAtCompletion == .completed)
    }

    @Test func anyStatusIsASuccess() async throws {
        let server = try await WebServer()
        let session = URLSession.test()
        for status in [200, 201, 204, 206, 300, 304, 400, 401, 404, 418, 500, 503, 999] {
            server.on("/\(status)", .head(status, status == 204 || status == 304 ? [] : ["Content-Length: 0"]))
            let loaded = try await session.load(server.url("/\(status)"))
            #expect(loaded.status == status && loaded.error == nil && loaded.data == Data())
        }
        session.invalidateAndCancel()
    }

    @Test func taskCopiesItsRequest() async throws {
        let server = try await WebServer(["/": .text("hello")])
        let session = URLSession.test()
        var request = URLRequest.to(server.url(), "POST", ["Header1": "value1"])
        let outcome = Outcome<Loaded>()
        let task = session.dataTask(with: request) { outcome.give(Loaded(data: $0, response: $1, error: $2)) }
        request.allHTTPHeaderFields = nil
        request.httpMethod = "GET"
        task.resume()
        _ = try await outcome.value()
        #expect(server.requests.first?["Header1"] == "value1" && server.requests.first?.method == "POST")
        #expect(task.originalRequest?.value(forHTTPHeaderField: "Header1") == "value1")
        session.invalidateAndCancel()
    }

    @Test func suspendedTaskSendsNothing() async throws {
        let server = try await WebServer(["/": .text("hello")])
        let session = URLSession.test()
        let suspended = session.dataTask(with: server.url("/suspended"))
        _ = try await session.load(server.url("/"))
        #expect(suspended.state == .suspended && server.requests.map(\.path) == ["/"])
        session.invalidateAndCancel()
    }

    @Test func bodyOfAGETIsRefused() async throws {
        let server = try await WebServer(["/": .text("hello")])
        for isStream in [false, true] {
            var request = URLRequest(url: server.url())
            if isStream { request.httpBodyStream = InputStream(data: Data([1])) } else { request.httpBody = Data([1]) }
            let recorder = DataRecorder()
            let notes = try await recorder.run(request)
            let error = try #require(notes.error as? URLError)
            #expect(error.code == .dataLengthExceedsMaximum)
            #expect(error.localizedDescription == "resource exceeds maximum size")
            #expect(error.failingURL == server.url() && notes.response == nil)
            #expect(recorder.eventsOfTheTask.filter { $0 != "created" && $0 != "metrics" } == ["complete"])
        }
        #expect(server.requests.isEmpty)
    }

    @Test func bodyIsSentFromDataOrAStream() async throws {
        let server = try await WebServer(["/": .text("taken")])
        let session = URLSession.test()
        for method in ["PUT", "POST", "DELETE", "PATCH"] {
            for isStream in [false, true] {
                var request = URLRequest.to(server.url(), method)
                if isStream {
                    request.httpBodyStream = InputStream(data: Data("a body".utf8))
                } else {
                    request.httpBody = Data("a body".utf8)
                }
                #expect(try await session.load(request).text == "taken")
                let heard = try #require(server.requests.last)
                #expect(heard.text == "a body" && heard.method == method)
                #expect(heard["Content-Length"] == (isStream ? nil : "6"))
                #expect(heard["Transfer-Encoding"] == WebProtocol.current.transferCoding(isChunked: isStream))
                let type = method == "POST" ? "application/x-www-form-urlencoded" : nil
                #expect(heard["Content-Type"] == type)
            }
        }
        session.invalidateAndCancel()
    }

    @Test(.onlyWithHTTP11) func explicitChunkedCodingIsKept() async throws {
        let server = try await WebServer(["/": .text("taken")])
        for method in ["HEAD", "PUT", "POST", "DELETE"] {
            for type in [nil, "text/plain; charset=utf-8"] {
                var request = URLRequest.to(
                    server.url(), method, ["Transfer-Encoding": "chunked", "Accept-Language": "en-us"])
                request.setValue(type, forHTTPHeaderField: "Content-Type")
                request.httpBodyStream = InputStream(data: Data(repeating: 7, count: 3000))
                let recorder = DataRecorder()
                let notes = try await recorder.run(request) { $0.urlCache = nil }
                let body = method == "HEAD" ? [] : ["data"]
                let expected = ["created", "sent", "response 200"] + body + ["metrics", "complete"]
                #expect(recorder.eventsOfTheTask == expected && notes.error == nil)
                let heard = try #require(server.requests.last)
                #expect(heard.bodyCount == 3000 && heard.values("Transfer-Encoding") == ["chunked"])
                #expect(heard["Accept-Language"] == "en-us" && heard["Content-Length"] == nil)
                let standard = method == "POST" ? "application/x-www-form-urlencoded" : nil
                #expect(heard["Content-Type"] == type ?? standard)
            }
        }
    }

    @Test func contentTypeOfAnEmptyBodyIsUnchanged() async throws {
        let server = try await WebServer(["/": .text("taken")])
        let session = URLSession.test()
        for method in ["GET", "HEAD", "PUT", "POST", "DELETE"] {
            for body in [nil, Data()] {
                for type in [nil, "text/plain; charset=utf-8"] {
                    var request = URLRequest.to(server.url(), method)
                    request.httpBody = body
                    request.setValue(type, forHTTPHeaderField: "Content-Type")
                    let loaded = try await session.load(request)
                    #expect(loaded.status == 200 && loaded.error == nil)
                    #expect(server.requests.last?["Content-Type"] == type)
                    #expect(server.requests.last?.bodyCount == 0)
                }
            }
        }
        session.invalidateAndCancel()
    }

    @Test func streamOfAKnownLengthHasAContentLength() async throws {
        let server = try await WebServer(["/": .text("taken")])
        var request = URLRequest.to(server.url(), "PUT", ["Content-Length": "6"])
        request.httpBodyStream = InputStream(data: Data("a body".utf8))
        let session = URLSession.test()
        #expect(try await session.load(request).text == "taken")
        #expect(server.requests.last?["Content-Length"] == "6" && server.requests.last?["Transfer-Encoding"] == nil)
        session.invalidateAndCancel()
    }

    @Test func emptyResponseGivesEmptyData() async throws {
        let server = try await WebServer(["/": .head(200, ["Content-Length: 0"])])
        let session = URLSession.test()
        let loaded = try await session.load(server.url())
        #expect(loaded.data == Data() && loaded.error == nil)
        session.invalidateAndCancel()
    }

    @Test func everyFramingOfABodyIsRead() async throws {
        let server = try await WebServer([
            "/length": .text("one two"), "/chunked": .chunked(["one", " ", "two"], trailers: ["X-Sum: 7"]),
            "/close": .head(200).then(.send(Array("one two".utf8)), .close),
            "/old": .raw("HTTP/1.0 200 OK\r\n\r\none two").closing,
        ])
        let session = URLSession.test()
        for path in ["/length", "/chunked", "/close", "/old"] {
            let loaded = try await session.load(server.url(path))
            #expect(loaded.text == "one two" && loaded.error == nil, "\(path)")
            #expect(loaded.response?.expectedContentLength == (path == "/length" ? 7 : -1))
        }
        session.invalidateAndCancel()
    }

    @Test func serverIsFoundByAnyOfItsAddresses() async throws {
        // The name also has an IPv6 address, which has no listener.
        let server = try await WebServer(["/": .text("hello")])
        let session = URLSession.test()
        let url = try #require(URL(string: "\(server.scheme)://localhost:\(server.port)/"))
        #expect(try await session.load(url).text == "hello")
        #expect(server.requests.first?["Host"] == "localhost:\(server.port)")
        session.invalidateAndCancel()
    }

    @Test func onlyTheHandlerReceivesTheResult() async throws {
        let server = try await WebServer(["/": .text("hello")])
        let recorder = DataRecorder()
        let session = URLSession.test(recorder)
        #expect(try await session.load(.to(server.url(), "POST", body: "up")).text == "hello")
        let settled = Gate()
        session.delegateQueue.addOperation { settled.open() }
        await settled.pass()
        #expect(recorder.eventsOfTheTask.filter { $0 != "metrics" } == ["created", "sent"])
        session.invalidateAndCancel()
    }

    @Test func taskIsOneWithItsCopies() {
        let session = URLSession.test()
        let task = session.dataTask(with: .to(URL(filePath: "/")))
        #expect(task.isEqual(task.copy()) && task.copy() as AnyObject === task)
        session.invalidateAndCancel()
    }
}
