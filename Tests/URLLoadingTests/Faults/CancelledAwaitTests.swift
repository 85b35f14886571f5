import Foundation
import Testing
import URLLoading

@Suite("Swift tasks cancelled while they await a load", .loading, .timeLimit(.minutes(20)))
struct CancelledAwaitTests {
    /// The stage of a load at which it is held.
    enum Stage: String, CaseIterable { case name, trust, redirect, challenge, head, content }
    enum Operation: String, CaseIterable { case data, upload, download, bytes, lines }

    /// Opens a gate at the delegate method, and never answers.
    private final class Silent: NSObject, URLSessionTaskDelegate {
        let asked: Gate
        init(_ asked: Gate) { self.asked = asked }

        func urlSession(
            _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
            completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
        ) {
            if challenge.isOfTheVariant { return completionHandler(.performDefaultHandling, nil) }
            self.asked.open()
        }

        func urlSession(
            _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
            completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
        ) {
            self.asked.open()
        }

        func urlSession(
            _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
            newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
        ) {
            self.asked.open()
        }
    }

    private func server(_ place: Stage, _ reached: Gate) async throws -> WebServer {
        let server = try await WebServer(tls: place == .trust ? Certificates.server() : nil)
        switch place {
        case .name, .trust: server.on("/", .text("never"))
        case .redirect: server.on("/", .redirect(307, to: "/there"))
        case .challenge: server.on("/", .text("no", ["WWW-Authenticate: Basic realm=\"r\""], status: 401))
        case .head: server.on("/", Answer([.open(reached), .hang]))
        case .content:
            server.on("/", .head(200, ["Content-Length: 9"]).then(.send(Array("half".utf8)), .open(reached), .hang))
        }
        return server
    }

    private func work(_ way: Operation, _ session: URLSession, _ url: URL) -> @Sendable () async throws -> Void {
        switch way {
        case .data: { _ = try await session.data(from: url) }
        case .upload: { _ = try await session.upload(for: .to(url, "PUT"), from: Data([1, 2])) }
        case .download: { _ = try await session.download(from: url) }
        case .bytes: { for try await _ in try await session.bytes(from: url).0 {} }
        case .lines: { for try await _ in try await session.bytes(from: url).0.lines {} }
        }
    }

    /// A proxy looks names up.
    private static let stages = Stage.allCases.filter { $0 != .name || ConnectionVariant.current.route == .direct }

    @Test(arguments: Self.stages, Operation.allCases)
    func cancelledAwaitThrowsAtEveryStep(_ place: Stage, _ way: Operation) async throws {
        let reached = Gate()
        let server = try await self.server(place, reached)
        let session = URLSession.test(Silent(reached)) {
            guard place == .name else { return }
            $0.resolve = { _, _, _ in reached.open() }
        }
        let url = place == .name ? try #require(URL(string: "http://slow.test/")) : server.url()
        let work = self.work(way, session, url)
        let running = Task { try await work() }
        #expect(await reached.pass())
        running.cancel()
        let error = await #expect(throws: URLError.self) { try await running.value }
        #expect(error?.code == .cancelled)
        session.finishTasksAndInvalidate()
        #expect(try await session.liveTasks().isEmpty)
    }
}
