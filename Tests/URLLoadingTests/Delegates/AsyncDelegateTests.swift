import Foundation
import Testing
import URLLoading

@Suite("Delegates with async functions", .loading, .timeLimit(.minutes(20)))
struct AsyncDelegateTests {
    final class Writer: NSObject, URLSessionDataDelegate, Sendable {
        let log = EventLog()
        let done = Outcome<URLError.Code?>()
        let disposition: URLSession.ResponseDisposition

        init(_ disposition: URLSession.ResponseDisposition = .allow) { self.disposition = disposition }

        func urlSession(
            _ session: URLSession, didReceive challenge: URLAuthenticationChallenge
        ) async -> (URLSession.AuthChallengeDisposition, URLCredential?) {
            if !challenge.isOfTheVariant { self.log.add("trust") }
            guard let trust = challenge.protectionSpace.serverTrust else { return (.performDefaultHandling, nil) }
            return (.useCredential, URLCredential(trust: trust))
        }

        func urlSession(
            _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
            newRequest request: URLRequest
        ) async -> URLRequest? {
            self.log.add("redirect")
            return request
        }

        func urlSession(
            _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge
        ) async -> (URLSession.AuthChallengeDisposition, URLCredential?) {
            self.log.add("challenge")
            return (.useCredential, URLCredential(user: "u", password: "p", persistence: .none))
        }

        func urlSession(_ session: URLSession, needNewBodyStreamForTask task: URLSessionTask) async -> InputStream? {
            self.log.add("needs body")
            return InputStream(data: Data("streamed".utf8))
        }

        func urlSession(
            _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse
        ) async -> URLSession.ResponseDisposition {
            self.log.add("response")
            return self.disposition
        }

        func urlSession(
            _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse
        ) async -> CachedURLResponse? {
            self.log.add("will cache")
            return nil
        }

        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
            self.log.add("complete")
            self.done.give((error as? URLError)?.code)
        }
    }

    @Test func asyncDelegateAnswersInPlaceOfHandlers() async throws {
        let server = try await WebServer(tls: Certificates.server())
        server.on("/moved", .redirect(307, to: "/"))
        server.on("/") { request in
            request["Authorization"] == nil
                ? .text("no", ["WWW-Authenticate: Basic realm=\"r\""], status: 401)
                : .text("yes", ["Cache-Control: max-age=60"])
        }
        let writer = Writer()
        let session = URLSession.test(writer)
        session.uploadTask(withStreamedRequest: .to(server.url("/moved"), "PUT")).resume()
        #expect(try await writer.done.value() == nil)
        #expect(
            writer.log.names == [
                "trust", "needs body", "redirect", "needs body", "challenge", "needs body", "response", "complete",
            ]
                || writer.log.names == [
                    "needs body", "trust", "redirect", "needs body", "challenge", "needs body", "response", "complete",
                ])
        #expect(server.requests.map(\.text) == ["streamed", "streamed", "streamed"])
        session.invalidateAndCancel()
    }

    @Test func delegateDecidesAboutTheCache() async throws {
        let server = try await WebServer(["/": .text("hello", ["Cache-Control: max-age=60"])])
        let writer = Writer()
        let session = URLSession.test(writer)
        session.dataTask(with: server.url()).resume()
        _ = try await writer.done.value()
        #expect(writer.log.names == ["response", "will cache", "complete"])
        #expect(session.configuration.urlCache?.cachedResponse(for: URLRequest(url: server.url())) == nil)
        session.invalidateAndCancel()
    }

    @Test func delegateDecidesAboutTheResponse() async throws {
        let server = try await WebServer(["/": .text("hello")])
        let writer = Writer(.cancel)
        let session = URLSession.test(writer)
        session.dataTask(with: server.url()).resume()
        #expect(try await writer.done.value() == .cancelled)
        session.invalidateAndCancel()
    }
}
