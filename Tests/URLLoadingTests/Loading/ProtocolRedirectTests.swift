import Foundation
import Testing
import URLLoading

@Suite("Redirects to what a program's protocol loads", .loading, .timeLimit(.minutes(20)))
struct ProtocolRedirectTests {
    /// Responds with the method and the body of its request.
    final class TargetProtocol: URLProtocol {
        override class func canInit(with request: URLRequest) -> Bool {
            request.url?.scheme == "myapp" || request.url?.host() == "target.test"
        }

        override func startLoading() {
            guard let url = self.request.url else { return }
            let body = self.request.httpBody.map { String(decoding: $0, as: UTF8.self) } ?? "none"
            let text = "\(self.request.httpMethod ?? "") \(body) \(self.request.value(forHTTPHeaderField: "X-A") ?? "")"
            let response = URLResponse(url: url, mimeType: nil, expectedContentLength: -1, textEncodingName: nil)
            self.client?.urlProtocol(self, didReceive: response, cacheStoragePolicy: .notAllowed)
            self.client?.urlProtocol(self, didLoad: Data(text.utf8))
            self.client?.urlProtocolDidFinishLoading(self)
        }

        override func stopLoading() {}
    }

    /// Redirects back to the server.
    final class ReturningProtocol: URLProtocol {
        override class func canInit(with request: URLRequest) -> Bool { request.url?.scheme == "back" }

        override func startLoading() {
            guard let url = self.request.url, let target = URL(string: "http" + url.absoluteString.dropFirst(4)),
                let moved = HTTPURLResponse(url: url, statusCode: 302, httpVersion: "HTTP/1.1", headerFields: nil)
            else { return }
            self.client?.urlProtocol(self, wasRedirectedTo: URLRequest(url: target), redirectResponse: moved)
        }

        override func stopLoading() {}
    }

    @Test(arguments: ["http://target.test/", "myapp://callback?code=1", "myapp:callback"])
    func protocolLoadsTheTarget(_ location: String) async throws {
        let server = try await WebServer(["/": .redirect(to: location)])
        let recorder = DataRecorder()
        let notes = try await recorder.run(.to(server.url(), "GET", ["X-A": "kept"])) {
            $0.protocolClasses = [TargetProtocol.self]
        }
        #expect(notes.error == nil && notes.data == Data("GET none kept".utf8))
        #expect(notes.response?.url == URL(string: location))
        #expect(notes.created.first?.currentRequest?.url == URL(string: location))
        #expect(notes.redirects.count == 1 && notes.metrics?.redirectCount == 1)
    }

    @Test(arguments: [(303, "GET none "), (307, "POST a body ")])
    func targetGetsTheBodyThatTheRedirectKeeps(_ status: Int, _ expected: String) async throws {
        let server = try await WebServer(["/": .redirect(status, to: "http://target.test/")])
        let session = URLSession.test { $0.protocolClasses = [TargetProtocol.self] }
        #expect(try await session.load(.to(server.url(), "POST", body: "a body")).text == expected)
        let (uploaded, _) = try await session.upload(for: .to(server.url(), "POST"), from: Data("a body".utf8))
        #expect(String(decoding: uploaded, as: UTF8.self) == expected)
        session.invalidateAndCancel()
    }

    @Test func otherTargetsAreLoadedAsBefore() async throws {
        let server = try await WebServer(["/": .redirect(to: "/there"), "/there": .text("hello")])
        let session = URLSession.test { $0.protocolClasses = [TargetProtocol.self] }
        #expect(try await session.load(server.url()).text == "hello")
        session.invalidateAndCancel()
    }

    @Test(.onlyPlain("the protocol leads back to http"))
    func circleThroughAProtocolEnds() async throws {
        let server = try await WebServer()
        server.on("/", .redirect(to: "back" + server.url().absoluteString.dropFirst(4)))
        let session = URLSession.test { $0.protocolClasses = [ReturningProtocol.self] }
        #expect(try await session.load(server.url()).code == .httpTooManyRedirects)
        #expect(server.requests.count == 11)
        session.invalidateAndCancel()
    }
}
