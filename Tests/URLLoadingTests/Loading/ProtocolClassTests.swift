import Foundation
import Synchronization
import Testing
import URLLoading

@Suite("Protocols of the program within a session", .loading, .timeLimit(.minutes(20)))
struct ProtocolClassTests {
    /// The last path component selects the response.
    class Answering: URLProtocol {
        override class func canInit(with request: URLRequest) -> Bool { request.url?.host() == "answers.test" }
        override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }

        static func pieces(_ path: String) -> [Data] {
            switch path {
            case "empty": []
            case "single": [Data([0x00, 0x66, 0xFF, 0x41])]
            default: [Data([0x00, 0x66]), Data([0xFF, 0x41])]
            }
        }

        override func startLoading() {
            guard let url = self.request.url,
                let response = HTTPURLResponse(
                    url: url, statusCode: 203, httpVersion: "HTTP/1.1",
                    headerFields: ["X-By": "class", "Cache-Control": "max-age=60"])
            else { return }
            let path = url.lastPathComponent
            let policy: URLCache.StoragePolicy = path == "kept" ? .allowed : .notAllowed
            let client: (any URLProtocolClient)? = self.client
            client?.urlProtocol(self, didReceive: response, cacheStoragePolicy: policy)
            for piece in Self.pieces(path) { client?.urlProtocol(self, didLoad: piece) }
            if path == "failure" {
                self.client?.urlProtocol(self, didFailWithError: URLError(.networkConnectionLost))
            }
            self.client?.urlProtocolDidFinishLoading(self)
        }

        override func stopLoading() {}
    }

    /// Loads another scheme, and its response has another URL.
    final class OtherSchemeProtocol: URLProtocol {
        override class func canInit(with request: URLRequest) -> Bool { request.url?.scheme == "ssh" }
        override func startLoading() {
            guard let url = URL(string: "http://elsewhere.test"),
                let response = HTTPURLResponse(url: url, statusCode: 200, httpVersion: "HTTP/1.1", headerFields: [:])
            else { return }
            self.client?.urlProtocol(self, didReceive: response, cacheStoragePolicy: .notAllowed)
            self.client?.urlProtocolDidFinishLoading(self)
        }
        override func stopLoading() {}
    }

    /// Responds with the property attached to the request.
    final class EchoProtocol: URLProtocol {
        override class func canInit(with request: URLRequest) -> Bool { true }
        override func startLoading() {
            let marker = URLProtocol.property(forKey: "marker", in: self.request) as? String ?? "none"
            guard let url = self.request.url else { return }
            self.client?.urlProtocol(
                self,
                didReceive: URLResponse(
                    url: url, mimeType: nil, expectedContentLength: -1, textEncodingName: nil),
                cacheStoragePolicy: .notAllowed)
            self.client?.urlProtocol(self, didLoad: Data(marker.utf8))
            self.client?.urlProtocolDidFinishLoading(self)
        }
        override func stopLoading() {}
    }

    /// Counts the started instances that are not released.
    final class Counted: Answering {
        static let alive = Atomic<Int>(0)

        override func startLoading() {
            Self.alive.add(1, ordering: .relaxed)
            super.startLoading()
        }

        deinit { Self.alive.subtract(1, ordering: .relaxed) }
    }

    /// Permits caching of a failed response.
    final class RefusingProtocol: URLProtocol {
        override class func canInit(with request: URLRequest) -> Bool { request.url?.host() == "answers.test" }
        override func startLoading() {
            guard let url = self.request.url, let status = Int(url.lastPathComponent),
                let response = HTTPURLResponse(
                    url: url, statusCode: status, httpVersion: "HTTP/1.1", headerFields: ["Cache-Control": "max-age=60"]
                )
            else { return }
            self.client?.urlProtocol(self, didReceive: response, cacheStoragePolicy: .allowed)
            self.client?.urlProtocolDidFinishLoading(self)
        }
        override func stopLoading() {}
    }

    /// Fails at once with an error of another domain than `URLError`.
    final class Failing: URLProtocol {
        struct Fault: Error {}
        override class func canInit(with request: URLRequest) -> Bool { request.url?.scheme == "failfast" }
        override class func canInit(with task: URLSessionTask) -> Bool {
            task.currentRequest.map { self.canInit(with: $0) } ?? false
        }
        override func startLoading() { self.client?.urlProtocol(self, didFailWithError: Fault()) }
        override func stopLoading() {}
    }

    private func url(_ text: String) throws -> URL { try #require(URL(string: text)) }

    /// Names of the process's threads.
    private static func threads() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: "/proc/self/task").compactMap {
            try? String(contentsOfFile: "/proc/self/task/\($0)/comm", encoding: .utf8)
        }
    }

    /// In a process of its own: other tests open loops.
    @Test(.choosesItsConnections) func loadsWithoutTheNetworkOpenNoLoop() async {
        await #expect(processExitsWith: .success) {
            let session = URLSession.test {
                $0.protocolClasses = [ProtocolClassTests.Answering.self]
                $0.urlCache = URLCache(memoryCapacity: 1 << 20, diskCapacity: 0)
            }
            let (own, stored, none) = (
                try #require(URL(string: "http://answers.test/single")),
                try #require(URL(string: "http://stored.test/")),
                try #require(URL(string: "http://127.0.0.1:1/"))
            )
            #expect(try await session.load(own).status == 203)
            let request = URLRequest(url: stored, cachePolicy: .returnCacheDataDontLoad)
            let response = try #require(
                HTTPURLResponse(
                    url: stored, statusCode: 200, httpVersion: "HTTP/1.1",
                    headerFields: ["Cache-Control": "max-age=600"]))
            session.configuration.urlCache?.storeCachedResponse(
                CachedURLResponse(response: response, data: Data("stored".utf8)), for: request)
            #expect(try await session.load(request).text == "stored")
            #expect(try !ProtocolClassTests.threads().contains { $0.hasPrefix("loop") })
            #expect(try await session.load(none).error != nil)
            #expect(try ProtocolClassTests.threads().contains { $0.hasPrefix("loop") })
        }
    }

    @Test(arguments: ["empty", "single", "multiple"])
    func handlerGetsAllPieces(_ path: String) async throws {
        let session = URLSession.test { $0.protocolClasses = [Answering.self] }
        let loaded = try await session.load(self.url("http://answers.test/\(path)"))
        #expect(loaded.data == Answering.pieces(path).reduce(Data(), +) && loaded.error == nil)
        #expect(loaded.status == 203 && loaded.http?.value(forHTTPHeaderField: "x-by") == "class")
        let (data, _) = try await session.data(from: self.url("http://answers.test/\(path)"))
        #expect(data == loaded.data)
        session.invalidateAndCancel()
    }

    @Test func delegateGetsEachPieceAsItIs() async throws {
        let recorder = DataRecorder()
        let notes = try await recorder.run(self.url("http://answers.test/multiple")) {
            $0.protocolClasses = [Answering.self]
        }
        #expect(notes.pieces == [Data([0x00, 0x66]), Data([0xFF, 0x41])] && notes.error == nil)
        #expect(recorder.eventsOfTheTask.filter { $0 != "metrics" } == ["created", "response 203", "data", "complete"])
    }

    @Test func failedProtocolLoadHasNoContent() async throws {
        let session = URLSession.test { $0.protocolClasses = [Answering.self] }
        let loaded = try await session.load(self.url("http://answers.test/failure"))
        #expect(loaded.data == nil && loaded.response != nil && loaded.code == .networkConnectionLost)
        session.invalidateAndCancel()
    }

    @Test func responseOfAProtocolMayBeCached() async throws {
        let session = URLSession.test { $0.protocolClasses = [Answering.self] }
        let loaded = try await session.load(self.url("http://answers.test/kept"))
        #expect(loaded.data == Data([0x00, 0x66, 0xFF, 0x41]) && loaded.status == 203)
        session.invalidateAndCancel()
    }

    @Test func protocolIsReleasedWithItsTask() async throws {
        weak var task: URLSessionTask?
        for path in ["single", "failure", "kept"] {
            let session = URLSession.test { $0.protocolClasses = [Counted.self] }
            let outcome = Outcome<Bool>()
            let running = session.dataTask(with: try self.url("http://answers.test/\(path)")) { _, _, _ in
                outcome.give(true)
            }
            task = running
            running.resume()
            #expect(try await outcome.value())
            session.finishTasksAndInvalidate()
        }
        let end = ContinuousClock.now + .seconds(240)
        while Counted.alive.load(ordering: .relaxed) > 0 || task != nil, ContinuousClock.now < end {
            await Task.yield()
        }
        #expect(Counted.alive.load(ordering: .relaxed) == 0 && task == nil)
    }

    @Test(arguments: [301, 404, 500])
    func onlySuccessIsCached(_ status: Int) async throws {
        let session = URLSession.test { $0.protocolClasses = [RefusingProtocol.self] }
        let url = try self.url("http://answers.test/\(status)")
        #expect(try await session.load(url).status == status)
        #expect(session.configuration.urlCache?.cachedResponse(for: URLRequest(url: url)) == nil)
        session.invalidateAndCancel()
    }

    @Test func protocolsAreAskedInOrderBeforeTheSessionsOwn() async throws {
        let session = URLSession.test { $0.protocolClasses = [OtherSchemeProtocol.self, Answering.self] }
        #expect(try await session.load(self.url("http://answers.test/single")).status == 203)
        let other = try await session.load(self.url("ssh://127.0.0.1/USA"))
        #expect(other.status == 200 && other.response?.url == URL(string: "http://elsewhere.test"))
        let server = try await WebServer(["/": .text("own")])
        #expect(try await session.load(server.url()).text == "own")
        session.invalidateAndCancel()
    }

    @Test func protocolReadsPropertiesOfTheRequest() async throws {
        let session = URLSession.test { $0.protocolClasses = [EchoProtocol.self] }
        let request = NSMutableURLRequest(url: try self.url("https://example.invalid/"))
        URLProtocol.setProperty("present", forKey: "marker", in: request)
        #expect(try await session.load(request as URLRequest).text == "present")
        session.invalidateAndCancel()
    }

    @Test func failureOfTheProtocolIsTheTasks() async throws {
        let session = URLSession.test { $0.protocolClasses = [Failing.self] }
        let loaded = try await session.load(self.url("failfast://bogus"))
        #expect(loaded.error != nil && loaded.data == nil)
        session.invalidateAndCancel()
    }

    /// Fails with the error that the path names.
    final class NamedFailure: URLProtocol {
        static let other = URL(filePath: "/other")

        override class func canInit(with request: URLRequest) -> Bool { request.url?.scheme == "failing" }
        override func startLoading() {
            let error: any Error =
                switch self.request.url?.path ?? "" {
                case "/url": URLError(.timedOut, userInfo: [NSLocalizedDescriptionKey: "own"])
                case "/named": URLError(.timedOut, userInfo: [NSURLErrorFailingURLErrorKey: Self.other])
                case "/domain": NSError(domain: NSURLErrorDomain, code: NSURLErrorTimedOut, userInfo: ["own": "kept"])
                default: NSError(domain: "own", code: 7, userInfo: ["own": "kept"])
                }
            self.client?.urlProtocol(self, didFailWithError: error)
        }
        override func stopLoading() {}
    }

    /// Finishes without a response.
    final class Silent: URLProtocol {
        override class func canInit(with request: URLRequest) -> Bool { request.url?.host() == "silent.test" }
        override func startLoading() {
            if self.request.url?.path == "/content" { self.client?.urlProtocol(self, didLoad: Data("words".utf8)) }
            self.client?.urlProtocolDidFinishLoading(self)
        }
        override func stopLoading() {}
    }

    @Test func contentIsDeliveredWithoutAResponse() async throws {
        let url = try self.url("http://silent.test/content")
        let session = URLSession.test { $0.protocolClasses = [Silent.self] }
        let loaded = try await session.load(url)
        #expect(loaded.text == "words" && loaded.response == nil && loaded.error == nil)
        session.invalidateAndCancel()
        let recorder = DataRecorder()
        let notes = try await recorder.run(url) { $0.protocolClasses = [Silent.self] }
        #expect(notes.data == Data("words".utf8) && notes.response == nil && notes.error == nil)
        #expect(recorder.eventsOfTheTask == ["created", "data", "metrics", "complete"])
    }

    @Test func awaitedLoadWithoutAResponseFailsForItsURL() async throws {
        let session = URLSession.test { $0.protocolClasses = [Silent.self] }
        let url = try self.url("http://silent.test/")
        let error = await #expect(throws: URLError.self) { try await session.data(from: url) }
        #expect(error?.code == .badServerResponse && error?.failingURL == url)
        session.invalidateAndCancel()
    }

    @Test func failureOfTheProtocolNamesItsURL() async throws {
        let session = URLSession.test { $0.protocolClasses = [NamedFailure.self] }
        func failure(_ path: String) async throws -> NSError {
            let error = try await session.load(self.url("failing://host" + path)).error
            return try #require(error.map { $0 as NSError })
        }
        let plain = try await session.load(self.url("failing://host/url")).error as? URLError
        #expect(plain?.code == .timedOut && plain?.localizedDescription == "own")
        #expect(plain?.failingURL == (try self.url("failing://host/url")))
        #expect(plain?.userInfo["NSErrorFailingURLStringKey"] as? String == "failing://host/url")
        let named = try await session.load(self.url("failing://host/named")).error as? URLError
        #expect(named?.failingURL == NamedFailure.other)
        let inDomain = try await failure("/domain")
        #expect(inDomain.code == NSURLErrorTimedOut && inDomain.userInfo["own"] as? String == "kept")
        #expect(inDomain.userInfo[NSURLErrorFailingURLErrorKey] as? URL == (try self.url("failing://host/domain")))
        let own = try await failure("/own")
        #expect(own.domain == "own" && own.code == 7 && own.userInfo.count == 1)
        session.invalidateAndCancel()
    }

    @Test func failedAndCancelledTaskEndsOnce() async throws {
        for _ in 0..<100 {
            let session = URLSession.test { $0.protocolClasses = [Failing.self] }
            let outcome = Outcome<Bool>()
            session.dataTask(with: try self.url("failfast://bogus")) { outcome.give($2 != nil) }.resume()
            session.invalidateAndCancel()
            #expect(try await outcome.value() && outcome.count == 1)
        }
    }
}
