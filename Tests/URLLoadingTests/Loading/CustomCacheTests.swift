import Foundation
import Synchronization
import Testing
import URLLoading

@Suite("Caches of the program within transfers", .loading, .timeLimit(.minutes(20)))
struct CustomCacheTests {
    enum Form: CaseIterable { case request, task }

    /// Stores nothing, and answers by one of the methods that look a response up.
    final class AnsweringCache: URLCache, @unchecked Sendable {
        private let form: Form
        private let answer: CachedURLResponse

        init(_ form: Form, _ answer: CachedURLResponse) {
            self.form = form
            self.answer = answer
            super.init(memoryCapacity: 0, diskCapacity: 0, directory: nil)
        }

        override func cachedResponse(for request: URLRequest) -> CachedURLResponse? {
            self.form == .request && request.url == self.answer.response.url ? self.answer : nil
        }

        override func getCachedResponse(
            for dataTask: URLSessionDataTask, completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void
        ) {
            guard self.form == .task else {
                return super.getCachedResponse(for: dataTask, completionHandler: completionHandler)
            }
            let found = dataTask.currentRequest?.url == self.answer.response.url ? self.answer : nil
            // The second call has no effect.
            for _ in 0..<2 { completionHandler(found) }
        }
    }

    /// Records what is stored for tasks.
    final class RecordingCache: URLCache, @unchecked Sendable {
        private let state = Mutex<[URL?]>([])
        var stored: [URL?] { self.state.withLock { $0 } }

        override func storeCachedResponse(_ cachedResponse: CachedURLResponse, for dataTask: URLSessionDataTask) {
            self.state.withLock { $0.append(dataTask.currentRequest?.url) }
            super.storeCachedResponse(cachedResponse, for: dataTask)
        }
    }

    private static let anHourAgo: String = {
        let formatter = DateFormatter()
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.timeZone = TimeZone(secondsFromGMT: 0)
        formatter.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
        return formatter.string(from: Date(timeIntervalSinceNow: -3600))
    }()

    private func answer(_ url: URL, _ fields: [String: String]) throws -> CachedURLResponse {
        let response = try #require(
            HTTPURLResponse(url: url, statusCode: 200, httpVersion: "HTTP/1.1", headerFields: fields))
        return CachedURLResponse(response: response, data: Data("mine".utf8))
    }

    @Test(arguments: Form.allCases)
    func responseOfTheProgramsCacheIsUsedAtAnyAge(_ form: Form) async throws {
        let server = try await WebServer(["/": .text("the server's"), "/other": .text("the server's")])
        let cache = AnsweringCache(form, try self.answer(server.url(), [:]))
        let session = URLSession.test {
            $0.urlCache = cache
            $0.requestCachePolicy = .returnCacheDataElseLoad
        }
        #expect(try await session.load(server.url()).text == "mine" && server.requests.isEmpty)
        #expect(try await session.load(server.url("/other")).text == "the server's")
        session.invalidateAndCancel()
    }

    @Test(arguments: Form.allCases, [7200, 1800])
    func dateOfACustomCachesResponseIsItsAge(_ form: Form, _ lifetime: Int) async throws {
        let server = try await WebServer(["/": .text("the server's")])
        let fields = ["Cache-Control": "max-age=\(lifetime)", "Date": Self.anHourAgo]
        let cache = AnsweringCache(form, try self.answer(server.url(), fields))
        let session = URLSession.test { $0.urlCache = cache }
        let isFresh = lifetime > 3600
        #expect(try await session.load(server.url()).text == (isFresh ? "mine" : "the server's"))
        #expect(server.requests.isEmpty == isFresh)
        session.invalidateAndCancel()
    }

    @Test(arguments: Form.allCases)
    func customCacheIsAskedForTheTargetOfARedirect(_ form: Form) async throws {
        let server = try await WebServer(["/": .redirect(to: "/there"), "/there": .text("the server's")])
        let cache = AnsweringCache(form, try self.answer(server.url("/there"), [:]))
        let session = URLSession.test {
            $0.urlCache = cache
            $0.requestCachePolicy = .returnCacheDataElseLoad
        }
        #expect(try await session.load(server.url()).text == "mine" && server.requests.map(\.path) == ["/"])
        session.invalidateAndCancel()
    }

    /// Answers when the test allows it.
    private final class BlockingCache: URLCache, @unchecked Sendable {
        let isAsked = Outcome<Bool>()
        let mayAnswer = DispatchSemaphore(value: 0)
        let wasAllowed = Outcome<Bool>()

        override func cachedResponse(for request: URLRequest) -> CachedURLResponse? {
            self.isAsked.give(true)
            self.wasAllowed.give(self.mayAnswer.wait(timeout: .now() + 120) == .success)
            return nil
        }
    }

    @Test func blockedCacheDelaysNoLoadOfAnotherSession() async throws {
        let server = try await WebServer(["/": .text("hello")])
        let cache = BlockingCache(memoryCapacity: 1 << 20, diskCapacity: 0, directory: nil)
        let (session, other) = (URLSession.test { $0.urlCache = cache }, URLSession.test())
        async let loaded = session.load(server.url())
        _ = try await cache.isAsked.value()
        let folder = try TemporaryFolder()
        let file = folder.url.appendingPathComponent("a.txt")
        try Data("from a file".utf8).write(to: file)
        let text = try? await other.load(file).text
        cache.mayAnswer.signal()
        #expect(try await cache.wasAllowed.value() && text == "from a file")
        #expect(try await loaded.text == "hello")
        session.invalidateAndCancel()
        other.invalidateAndCancel()
    }

    @Test func responseIsStoredForItsTask() async throws {
        let server = try await WebServer(["/": .text("hello", ["Cache-Control: max-age=600"])])
        let cache = RecordingCache(memoryCapacity: 1 << 20, diskCapacity: 0, directory: nil)
        let session = URLSession.test { $0.urlCache = cache }
        for _ in 0..<2 { #expect(try await session.load(server.url()).text == "hello") }
        #expect(cache.stored == [server.url()] && server.requests.count == 1)
        session.invalidateAndCancel()
    }
}
