import Foundation
import Testing
import URLLoading

/// Protocols as programs write them to watch or to change their requests.
@Suite("Protocols that forward to a session of their own", .loading, .timeLimit(.minutes(20)))
struct ProtocolForwardingTests {
    /// The delegate of its own session: the class must be `Sendable` for that.
    final class Forwarding: URLProtocol, URLSessionDataDelegate, @unchecked Sendable {
        private lazy var session = URLSession.test(self)

        override class func canInit(with request: URLRequest) -> Bool { request.url?.scheme == "http" }

        override func startLoading() { self.session.dataTask(with: self.request).resume() }
        override func stopLoading() { self.session.invalidateAndCancel() }

        func urlSession(
            _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
            completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
        ) {
            self.client?.urlProtocol(self, didReceive: response, cacheStoragePolicy: .notAllowed)
            completionHandler(.allow)
        }

        func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
            self.client?.urlProtocol(self, didLoad: data)
        }

        func urlSession(
            _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
            newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
        ) {
            self.client?.urlProtocol(self, wasRedirectedTo: request, redirectResponse: response)
            completionHandler(nil)
        }

        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
            if let error {
                self.client?.urlProtocol(self, didFailWithError: error)
            } else {
                self.client?.urlProtocolDidFinishLoading(self)
            }
        }
    }

    @Test func forwardedLoadFollowsARedirect() async throws {
        let server = try await WebServer(["/": .redirect(to: "/there"), "/there": .text("hello")])
        let recorder = DataRecorder()
        let notes = try await recorder.run(server.url()) { $0.protocolClasses = [Forwarding.self] }
        #expect(notes.error == nil && notes.data == Data("hello".utf8) && notes.redirects.count == 1)
        #expect(server.requests.map(\.path) == ["/", "/there"])
    }

    @Test(arguments: ["file:///etc/passwd", "data:,secret", "myapp:callback"])
    func forwardedRedirectReadsNoFile(_ location: String) async throws {
        let server = try await WebServer(["/": .redirect(to: location)])
        let recorder = DataRecorder()
        let notes = try await recorder.run(server.url()) { $0.protocolClasses = [Forwarding.self] }
        #expect((notes.error as? URLError)?.code == .unsupportedURL && notes.data.isEmpty)
        #expect(notes.redirects.map(\.request.url) == [URL(string: location)])
    }

    @Test func forwardedCircleEnds() async throws {
        let server = try await WebServer(["/": .redirect(to: "/")])
        let session = URLSession.test { $0.protocolClasses = [Forwarding.self] }
        #expect(try await session.load(server.url()).code == .httpTooManyRedirects)
        #expect(server.requests.count == 21)
        session.invalidateAndCancel()
    }

    @Test(.exceptForwarded) func forwardedFailureIsThatOfTheTask() async throws {
        let port = try ClosedPort()
        let session = URLSession.test { $0.protocolClasses = [Forwarding.self] }
        let url = try #require(URL(string: "http://127.0.0.1:\(port.port)/"))
        #expect(try await session.load(url).code == .cannotConnectToHost)
        session.invalidateAndCancel()
    }
}
