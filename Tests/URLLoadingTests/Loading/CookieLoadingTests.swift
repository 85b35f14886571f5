import Foundation
import Testing
import URLLoading

@Suite("Cookies of transfers", .loading, .timeLimit(.minutes(20)))
struct CookieLoadingTests {
    private func server() async throws -> WebServer {
        let server = try await WebServer()
        server.on(
            "/set",
            .text(
                "",
                [
                    "Set-Cookie: fr=anjd&232; Max-Age=7776000; path=/",
                    "Set-Cookie: nm=sddf&232; Max-Age=7776000; path=/; domain=.swift.org; secure; httponly",
                ]))
        server.on("/get", .text(""))
        server.on("/moved", .redirect(to: "/get", ["Set-Cookie: redirect=true; Max-Age=7776000; path=/"]))
        return server
    }

    @Test func cookieIsKeptAndSentBack() async throws {
        let server = try await self.server()
        let session = URLSession.test()
        let loaded = try await session.load(.to(server.url("/set"), "POST"))
        #expect(loaded.http?.allHeaderFields["Set-Cookie"] != nil)
        // The cookie for another site is not kept.
        #expect(session.configuration.httpCookieStorage?.cookies?.map(\.name) == ["fr"])
        _ = try await session.load(.to(server.url("/get"), "POST"))
        #expect(server.requests.last?["Cookie"] == "fr=anjd&232")
        session.invalidateAndCancel()
    }

    @Test func cookiesAreStoredBeforeTheDelegateIsCalled() async throws {
        let server = try await self.server()
        let configuration = URLSessionConfiguration.test
        let storage = try #require(configuration.httpCookieStorage)
        var policies = Policies()
        let had = Outcome<Int?>()
        policies.response = { _, answer in
            had.give(storage.cookies?.count)
            answer(.allow)
        }
        let session = URLSession(configuration: configuration, delegate: DataRecorder(policies), delegateQueue: nil)
        session.dataTask(with: server.url("/set")).resume()
        #expect(try await had.value() == 1)
        session.invalidateAndCancel()
    }

    @Test func cookieOfARedirectIsSentToItsTarget() async throws {
        let server = try await self.server()
        let session = URLSession.test()
        _ = try await session.load(server.url("/moved"))
        #expect(server.requests("/get").first?["Cookie"] == "redirect=true")
        session.invalidateAndCancel()
    }

    @Test func cookieIsNotSentWhereItIsForbidden() async throws {
        let server = try await self.server()
        let session = URLSession.test { $0.httpShouldSetCookies = false }
        _ = try await session.load(server.url("/set"))
        _ = try await session.load(server.url("/get"))
        #expect(server.requests.last?["Cookie"] == nil)
        let other = URLSession.test()
        _ = try await other.load(server.url("/set"))
        var request = URLRequest(url: server.url("/get"))
        request.httpShouldHandleCookies = false
        _ = try await other.load(request)
        #expect(server.requests.last?["Cookie"] == nil)
        session.invalidateAndCancel()
        other.invalidateAndCancel()
    }

    @Test func cookieIsNotKeptWhereThePolicyForbidsIt() async throws {
        let server = try await self.server()
        let session = URLSession.test { $0.httpCookieAcceptPolicy = .never }
        _ = try await session.load(server.url("/set"))
        #expect(session.configuration.httpCookieStorage?.cookies ?? [] == [])
        var request = URLRequest(url: server.url("/set"))
        request.httpShouldHandleCookies = false
        let other = URLSession.test()
        _ = try await other.load(request)
        #expect(other.configuration.httpCookieStorage?.cookies ?? [] == [])
        session.invalidateAndCancel()
        other.invalidateAndCancel()
    }

    @Test func cookieForAnotherMainDocumentIsNotKept() async throws {
        let server = try await self.server()
        let session = URLSession.test { $0.httpCookieAcceptPolicy = .onlyFromMainDocumentDomain }
        var request = URLRequest(url: server.url("/set"))
        request.mainDocumentURL = URL(string: "http://elsewhere.test/")
        _ = try await session.load(request)
        #expect(session.configuration.httpCookieStorage?.cookies ?? [] == [])
        session.invalidateAndCancel()
    }

    @Test func cookieIsKeptAndSentForAnotherMainDocumentWhereThePolicyAllowsIt() async throws {
        let server = try await self.server()
        let session = URLSession.test { $0.httpCookieAcceptPolicy = .always }
        for path in ["/set", "/get"] {
            var request = URLRequest(url: server.url(path))
            request.mainDocumentURL = URL(string: "http://elsewhere.test/")
            _ = try await session.load(request)
        }
        #expect(server.requests.last?["Cookie"] == "fr=anjd&232")
        session.invalidateAndCancel()
    }

    @Test func cookieOfTheProgramGoesBeforeTheStores() async throws {
        let server = try await self.server()
        let session = URLSession.test()
        _ = try await session.load(server.url("/set"))
        _ = try await session.load(.to(server.url("/get"), "GET", ["Cookie": "own=1"]))
        let sent = try #require(server.requests.last?["Cookie"])
        #expect(sent.contains("own=1"))
        session.invalidateAndCancel()
    }

    @Test func storageIsAskedForTheTask() async throws {
        let server = try await self.server()
        let storage = RecordingStorage()
        let session = URLSession.test { $0.httpCookieStorage = storage }
        _ = try await session.load(server.url("/set"))
        _ = try await session.load(server.url("/get"))
        #expect(storage.log.count("store") == 1 && storage.log.count("get") == 2)
        let task = session.dataTask(with: server.url("/get"))
        #expect(await storage.cookies(for: task)?.map(\.name) == ["fr"])
        session.invalidateAndCancel()
    }

    /// Has one cookie for every URL, and keeps none.
    private final class ConstantStorage: HTTPCookieStorage, @unchecked Sendable {
        let log = EventLog()

        override func cookies(for url: URL) -> [HTTPCookie]? {
            let cookie = HTTPCookie(properties: [
                .name: "own", .value: url.lastPathComponent, .originURL: url, .path: "/",
            ])
            return [cookie].compactMap(\.self) + (super.cookies(for: url) ?? [])
        }

        override func setCookies(_ cookies: [HTTPCookie], for url: URL?, mainDocumentURL: URL?) {
            for cookie in cookies { self.log.add(cookie.name) }
        }
    }

    @Test func cookiesAreThoseOfTheOverriddenMethods() async throws {
        let server = try await self.server()
        let storage = ConstantStorage()
        let session = URLSession.test { $0.httpCookieStorage = storage }
        _ = try await session.load(server.url("/set"))
        _ = try await session.load(server.url("/get"))
        #expect(server.requests.map { $0["Cookie"] } == ["own=set", "own=get"])
        #expect(storage.log.names.first == "fr")
        session.invalidateAndCancel()
    }

    @Test func documentOfTheTaskAppliesToASubclass() async throws {
        final class Plain: HTTPCookieStorage, @unchecked Sendable {}
        let server = try await self.server()
        let storage = Plain()
        let url = server.url("/get")
        let strict = try #require(
            HTTPCookie(properties: [
                .name: "strict", .value: "1", .originURL: url, .path: "/",
                .sameSitePolicy: HTTPCookieStringPolicy.sameSiteStrict,
            ]))
        storage.setCookie(strict)
        let session = URLSession.test {
            $0.httpCookieStorage = storage
            $0.urlCache = nil
        }
        var request = URLRequest(url: url)
        _ = try await session.load(request)
        request.mainDocumentURL = URL(string: "http://other.test/")
        _ = try await session.load(request)
        #expect(server.requests.map { $0["Cookie"] } == ["strict=1", nil])
        session.invalidateAndCancel()
    }

    /// Has no cookies, and answers when the test allows it.
    private final class BlockingStorage: HTTPCookieStorage, @unchecked Sendable {
        let isAsked = Outcome<Bool>()
        let mayAnswer = DispatchSemaphore(value: 0)
        let wasAllowed = Outcome<Bool>()

        override func cookies(for url: URL) -> [HTTPCookie]? {
            self.isAsked.give(true)
            self.wasAllowed.give(self.mayAnswer.wait(timeout: .now() + 120) == .success)
            return nil
        }
    }

    @Test func blockedStorageStopsNoTaskWithoutCookies() async throws {
        let server = try await self.server()
        let storage = BlockingStorage()
        let session = URLSession.test { $0.httpCookieStorage = storage }
        async let waiting = session.load(server.url("/get"))
        _ = try await storage.isAsked.value()
        var request = URLRequest(url: server.url("/get"))
        request.httpShouldHandleCookies = false
        let status = try? await session.load(request).status
        storage.mayAnswer.signal()
        #expect(try await storage.wasAllowed.value() && status == 200)
        #expect(try await waiting.status == 200)
        session.invalidateAndCancel()
    }

    final class RecordingStorage: HTTPCookieStorage, @unchecked Sendable {
        let log = EventLog()

        override func storeCookies(_ cookies: [HTTPCookie], for task: URLSessionTask) {
            self.log.add("store")
            super.storeCookies(cookies, for: task)
        }

        override func getCookiesFor(
            _ task: URLSessionTask, completionHandler: @escaping @Sendable ([HTTPCookie]?) -> Void
        ) {
            self.log.add("get")
            super.getCookiesFor(task, completionHandler: completionHandler)
        }
    }
}
