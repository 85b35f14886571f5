import Foundation
import Testing
import URLLoading

@Suite("Stores of sessions: reset and flush", .loading, .timeLimit(.minutes(20)))
struct SessionStoresTests {
    private static let space = URLProtectionSpace(
        host: "a.test", port: 80, protocol: "http", realm: "r", authenticationMethod: NSURLAuthenticationMethodHTTPBasic
    )

    private func filled(_ server: WebServer, _ session: URLSession) async throws {
        _ = try await session.load(server.url("/"))
        session.configuration.urlCredentialStorage?.set(
            URLCredential(user: "u", password: "p", persistence: .forSession), for: Self.space)
        #expect(session.configuration.httpCookieStorage?.cookies?.count == 1)
        #expect(session.configuration.urlCache?.cachedResponse(for: URLRequest(url: server.url("/"))) != nil)
    }

    private func server() async throws -> WebServer {
        try await WebServer(["/": .text("kept", ["Set-Cookie: a=b; Path=/", "Cache-Control: max-age=600"])])
    }

    @Test func resetEmptiesTheStores() async throws {
        let server = try await self.server()
        let session = URLSession.test()
        try await self.filled(server, session)
        let done = Outcome<Bool>()
        session.reset { done.give(OperationQueue.current === session.delegateQueue) }
        #expect(try await done.value())
        #expect(session.configuration.httpCookieStorage?.cookies ?? [] == [])
        #expect(session.configuration.urlCache?.cachedResponse(for: URLRequest(url: server.url("/"))) == nil)
        #expect(session.configuration.urlCredentialStorage?.allCredentials.isEmpty == true)
        _ = try await session.load(server.url("/"))
        #expect(server.connections == 2 && server.requests.last?["Cookie"] == nil)
        try await self.filled(server, session)
        await session.reset()
        #expect(session.configuration.httpCookieStorage?.cookies ?? [] == [])
        session.invalidateAndCancel()
    }

    @Test func flushKeepsTheStoresAndClosesConnections() async throws {
        let server = try await self.server()
        let session = URLSession.test { $0.requestCachePolicy = .reloadIgnoringLocalCacheData }
        try await self.filled(server, session)
        let done = Outcome<Bool>()
        session.flush { done.give(OperationQueue.current === session.delegateQueue) }
        #expect(try await done.value())
        _ = try await session.load(server.url("/"))
        #expect(server.connections == 2 && server.requests.last?["Cookie"] == "a=b")
        #expect(session.configuration.urlCredentialStorage?.allCredentials.count == 1)
        await session.flush()
        _ = try await session.load(server.url("/"))
        #expect(server.connections == 3)
        session.invalidateAndCancel()
    }

    @Test func resetKeepsRunningTasks() async throws {
        let gate = Gate()
        let server = try await WebServer(["/": .text("done").after(gate)])
        let session = URLSession.test()
        async let loaded = session.load(server.url())
        await server.hasReceived(1)
        await session.flush()
        await session.reset()
        gate.open()
        #expect(try await loaded.text == "done")
        session.invalidateAndCancel()
    }

    @Test func ephemeralSessionHasItsOwnStores() async throws {
        let server = try await self.server()
        let one = URLSession.test()
        let other = URLSession.test()
        _ = try await one.load(server.url("/"))
        _ = try await other.load(server.url("/"))
        #expect(server.requests.map { $0["Cookie"] } == [nil, nil])
        one.invalidateAndCancel()
        other.invalidateAndCancel()
    }

    @Test func sessionWithoutStoresSendsNoCookies() async throws {
        let server = try await self.server()
        let session = URLSession.test {
            $0.httpCookieStorage = nil
            $0.urlCache = nil
            $0.urlCredentialStorage = nil
        }
        for _ in 0..<2 { _ = try await session.load(server.url("/")) }
        #expect(server.requests.count == 2 && server.requests.allSatisfy { $0["Cookie"] == nil })
        await session.reset()
        session.invalidateAndCancel()
    }
}
