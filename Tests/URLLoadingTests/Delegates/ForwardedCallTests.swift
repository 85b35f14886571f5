import Foundation
import Testing
import URLLoading

/// On Apple's platforms the form of a method with a completion handler and its asynchronous form are one method: a delegate
/// that forwards its calls reaches either.
@Suite("Delegate calls that a program forwards", .loading, .timeLimit(.minutes(20)))
struct ForwardedCallTests {
    private static let url = URL(filePath: "/there")

    /// Implements the asynchronous forms, with answers that are not the default.
    final class AsyncForms: NSObject, URLSessionDataDelegate, Sendable {
        func urlSession(
            _ session: URLSession, didReceive challenge: URLAuthenticationChallenge
        ) async -> (URLSession.AuthChallengeDisposition, URLCredential?) { (.rejectProtectionSpace, nil) }

        func urlSession(
            _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge
        ) async -> (URLSession.AuthChallengeDisposition, URLCredential?) { (.cancelAuthenticationChallenge, nil) }

        func urlSession(
            _ session: URLSession, task: URLSessionTask, willBeginDelayedRequest request: URLRequest
        ) async -> (URLSession.DelayedRequestDisposition, URLRequest?) { (.cancel, nil) }

        func urlSession(
            _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
            newRequest request: URLRequest
        ) async -> URLRequest? { nil }

        func urlSession(_ session: URLSession, needNewBodyStreamForTask task: URLSessionTask) async -> InputStream? {
            InputStream(data: Data())
        }

        func urlSession(
            _ session: URLSession, needNewBodyStreamForTask task: URLSessionTask, from offset: Int64
        ) async -> InputStream? { InputStream(data: Data()) }

        func urlSession(
            _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse
        ) async -> URLSession.ResponseDisposition { .becomeDownload }

        func urlSession(
            _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse
        ) async -> CachedURLResponse? { nil }
    }

    /// Implements the forms with completion handlers, with the same answers.
    final class HandlerForms: NSObject, URLSessionDataDelegate, Sendable {
        func urlSession(
            _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
            completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
        ) { completionHandler(.rejectProtectionSpace, nil) }

        func urlSession(
            _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
            completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
        ) { completionHandler(.cancelAuthenticationChallenge, nil) }

        func urlSession(
            _ session: URLSession, task: URLSessionTask, willBeginDelayedRequest request: URLRequest,
            completionHandler: @escaping @Sendable (URLSession.DelayedRequestDisposition, URLRequest?) -> Void
        ) { completionHandler(.cancel, nil) }

        func urlSession(
            _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
            newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
        ) { completionHandler(nil) }

        func urlSession(
            _ session: URLSession, task: URLSessionTask,
            needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void
        ) { completionHandler(InputStream(data: Data())) }

        func urlSession(
            _ session: URLSession, task: URLSessionTask, needNewBodyStreamFrom offset: Int64,
            completionHandler: @escaping @Sendable (InputStream?) -> Void
        ) { completionHandler(InputStream(data: Data())) }

        func urlSession(
            _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
            completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
        ) { completionHandler(.becomeDownload) }

        func urlSession(
            _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse,
            completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void
        ) {
            // Calls after the first are ignored.
            completionHandler(nil)
            completionHandler(proposedResponse)
        }
    }

    /// Implements neither.
    final class Silent: NSObject, URLSessionDataDelegate, Sendable {}

    private static let answers = [
        "session challenge 3", "challenge 2", "delayed 2", "redirect false", "body true", "rest true", "response 2",
        "cache false",
    ]
    private static let defaults = [
        "session challenge 1", "challenge 1", "delayed 0", "redirect true", "body false", "rest false", "response 1",
        "cache true",
    ]

    private let session = URLSession.test()
    private let challenge = URLAuthenticationChallenge(
        protectionSpace: URLProtectionSpace(
            host: "h", port: 1, protocol: "http", realm: nil, authenticationMethod: nil),
        proposedCredential: nil, previousFailureCount: 0, failureResponse: nil, error: nil, sender: Sender())

    private final class Sender: NSObject, URLAuthenticationChallengeSender {
        func use(_ credential: URLCredential, for challenge: URLAuthenticationChallenge) {}
        func continueWithoutCredential(for challenge: URLAuthenticationChallenge) {}
        func cancel(_ challenge: URLAuthenticationChallenge) {}
    }

    private func answer(_ call: (@escaping @Sendable (String) -> Void) -> Void) async throws -> String {
        let outcome = Outcome<String>()
        call { outcome.give($0) }
        return try await outcome.value()
    }

    private func answersWithHandlers(of delegate: any URLSessionDataDelegate) async throws -> [String] {
        let (session, request) = (self.session, URLRequest(url: Self.url))
        let task = session.dataTask(with: request)
        let response = try #require(
            HTTPURLResponse(url: Self.url, statusCode: 302, httpVersion: nil, headerFields: nil))
        let cached = CachedURLResponse(response: response, data: Data())
        return [
            try await self.answer { give in
                delegate.urlSession(session, didReceive: self.challenge) { disposition, _ in
                    give("session challenge \(disposition.rawValue)")
                }
            },
            try await self.answer { give in
                delegate.urlSession(session, task: task, didReceive: self.challenge) { disposition, _ in
                    give("challenge \(disposition.rawValue)")
                }
            },
            try await self.answer { give in
                delegate.urlSession(session, task: task, willBeginDelayedRequest: request) { disposition, _ in
                    give("delayed \(disposition.rawValue)")
                }
            },
            try await self.answer { give in
                delegate.urlSession(session, task: task, willPerformHTTPRedirection: response, newRequest: request) {
                    give("redirect \($0 == request)")
                }
            },
            try await self.answer { give in delegate.urlSession(session, task: task) { give("body \($0 != nil)") } },
            try await self.answer { give in
                delegate.urlSession(session, task: task, needNewBodyStreamFrom: 1) { give("rest \($0 != nil)") }
            },
            try await self.answer { give in
                delegate.urlSession(session, dataTask: task, didReceive: response) { give("response \($0.rawValue)") }
            },
            try await self.answer { give in
                delegate.urlSession(session, dataTask: task, willCacheResponse: cached) {
                    give("cache \($0 === cached)")
                }
            },
        ]
    }

    private func asyncAnswers(of delegate: any URLSessionDataDelegate) async throws -> [String] {
        let (session, request) = (self.session, URLRequest(url: Self.url))
        let task = session.dataTask(with: request)
        let response = try #require(
            HTTPURLResponse(url: Self.url, statusCode: 302, httpVersion: nil, headerFields: nil))
        let cached = CachedURLResponse(response: response, data: Data())
        let redirected = await delegate.urlSession(
            session, task: task, willPerformHTTPRedirection: response, newRequest: request)
        let delayed = await delegate.urlSession(session, task: task, willBeginDelayedRequest: request)
        let kept = await delegate.urlSession(session, dataTask: task, willCacheResponse: cached)
        return [
            "session challenge \(await delegate.urlSession(session, didReceive: self.challenge).0.rawValue)",
            "challenge \(await delegate.urlSession(session, task: task, didReceive: self.challenge).0.rawValue)",
            "delayed \(delayed.0.rawValue)",
            "redirect \(redirected == request)",
            "body \(await delegate.urlSession(session, needNewBodyStreamForTask: task) != nil)",
            "rest \(await delegate.urlSession(session, needNewBodyStreamForTask: task, from: 1) != nil)",
            "response \(await delegate.urlSession(session, dataTask: task, didReceive: response).rawValue)",
            "cache \(kept === cached)",
        ]
    }

    @Test func callWithAHandlerReachesTheAsynchronousForm() async throws {
        for _ in 0..<2 { #expect(try await self.answersWithHandlers(of: AsyncForms()) == Self.answers) }
        self.session.invalidateAndCancel()
    }

    @Test func asynchronousCallReachesTheFormWithAHandler() async throws {
        for _ in 0..<2 { #expect(try await self.asyncAnswers(of: HandlerForms()) == Self.answers) }
        self.session.invalidateAndCancel()
    }

    @Test func delegateWithNeitherFormGivesTheDefaultAnswer() async throws {
        for _ in 0..<2 {
            #expect(try await self.answersWithHandlers(of: Silent()) == Self.defaults)
            #expect(try await self.asyncAnswers(of: Silent()) == Self.defaults)
        }
        self.session.invalidateAndCancel()
    }

    /// Passes its calls on.
    private final class Forwarding: NSObject, URLSessionTaskDelegate, Sendable {
        let inner = AsyncDelegateTests.Writer()

        func urlSession(
            _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
            completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
        ) {
            self.inner.urlSession(
                session, task: task, didReceive: challenge, completionHandler: completionHandler)
        }
    }

    @Test func forwardedChallengeIsAnsweredByTheAsynchronousForm() async throws {
        let server = try await WebServer()
        server.on("/") {
            $0["Authorization"] == nil
                ? .text("no", ["WWW-Authenticate: Basic realm=\"r\""], status: 401) : .text("yes")
        }
        let forwarding = Forwarding()
        let session = URLSession.test(forwarding) { $0.urlCache = nil }
        for _ in 0..<2 { #expect(try await session.load(server.url()).status == 200) }
        #expect(forwarding.inner.log.names.allSatisfy { $0 == "challenge" } && !forwarding.inner.log.names.isEmpty)
        session.invalidateAndCancel()
    }
}
