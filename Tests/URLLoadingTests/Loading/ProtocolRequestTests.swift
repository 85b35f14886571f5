import Foundation
import Testing
import URLLoading

@Suite("The request that a program's protocol loads", .loading, .timeLimit(.minutes(20)))
struct ProtocolRequestTests {
    /// Responds with the fields `X-Session`, `X-Own` and `Authorization` of its request. Redirects `/moved` to another
    /// host.
    final class FieldsProtocol: URLProtocol {
        override class func canInit(with request: URLRequest) -> Bool {
            request.url?.host()?.hasSuffix("fields.test") == true
        }

        override func startLoading() {
            guard let url = self.request.url, let target = URL(string: "http://other.fields.test/"),
                let moved = HTTPURLResponse(url: url, statusCode: 302, httpVersion: "HTTP/1.1", headerFields: nil)
            else { return }
            guard url.path != "/moved" else {
                self.client?.urlProtocol(self, wasRedirectedTo: URLRequest(url: target), redirectResponse: moved)
                return
            }
            let values = ["X-Session", "X-Own", "Authorization"].map { self.request.value(forHTTPHeaderField: $0) }
            ProtocolRequestTests.respond(self, values.map { $0 ?? "none" }.joined(separator: " "))
        }

        override func stopLoading() {}
    }

    /// Responds with the body in `httpBodyStream`, a slash, and that in `httpBody`.
    final class BodyProtocol: URLProtocol {
        override class func canInit(with request: URLRequest) -> Bool { true }

        override func startLoading() {
            var text = self.request.httpBodyStream.map(Self.content) ?? "none"
            text += "/" + (self.request.httpBody.map { String(decoding: $0, as: UTF8.self) } ?? "none")
            ProtocolRequestTests.respond(self, text)
        }

        override func stopLoading() {}

        private static func content(_ stream: InputStream) -> String {
            var content: [UInt8] = []
            var buffer = [UInt8](repeating: 0, count: 4)
            stream.open()
            while stream.hasBytesAvailable {
                let count = stream.read(&buffer, maxLength: buffer.count)
                guard count > 0 else { break }
                content += buffer[..<count]
            }
            stream.close()
            return String(decoding: content, as: UTF8.self)
        }
    }

    fileprivate static func respond(_ loading: URLProtocol, _ text: String) {
        guard let url = loading.request.url else { return }
        let response = URLResponse(url: url, mimeType: nil, expectedContentLength: -1, textEncodingName: nil)
        loading.client?.urlProtocol(loading, didReceive: response, cacheStoragePolicy: .notAllowed)
        loading.client?.urlProtocol(loading, didLoad: Data(text.utf8))
        loading.client?.urlProtocolDidFinishLoading(loading)
    }

    private func request(_ text: String, _ method: String = "GET") throws -> URLRequest {
        var request = URLRequest(url: try #require(URL(string: text)))
        request.httpMethod = method
        return request
    }

    /// Redirects each POST to a GET of the server's root, as a protocol does that forwards a 303.
    final class SeeingOther: URLProtocol {
        override class func canInit(with request: URLRequest) -> Bool { request.httpMethod == "POST" }

        override func startLoading() {
            guard let url = self.request.url, let target = URL(string: "/", relativeTo: url)?.absoluteURL,
                let moved = HTTPURLResponse(url: url, statusCode: 303, httpVersion: "HTTP/1.1", headerFields: nil)
            else { return }
            self.client?.urlProtocol(self, wasRedirectedTo: URLRequest(url: target), redirectResponse: moved)
        }

        override func stopLoading() {}
    }

    @Test func redirectOfAProtocolHasItsOwnBody() async throws {
        let server = try await WebServer(["/": .text("seen")])
        let session = URLSession.test { $0.protocolClasses = [SeeingOther.self] }
        #expect(try await session.load(.to(server.url("/form"), "POST", body: "a body")).text == "seen")
        let (uploaded, _) = try await session.upload(for: .to(server.url("/form"), "POST"), from: Data("b".utf8))
        #expect(String(decoding: uploaded, as: UTF8.self) == "seen")
        #expect(server.requests.map(\.method) == ["GET", "GET"] && server.requests.allSatisfy { $0.bodyCount == 0 })
        session.invalidateAndCancel()
    }

    @Test func hasTheFieldsOfTheSession() async throws {
        let session = URLSession.test {
            $0.protocolClasses = [FieldsProtocol.self]
            $0.httpAdditionalHeaders = ["X-Session": "session", "x-own": "session", "Authorization": "secret"]
        }
        var request = try self.request("http://fields.test/")
        request.setValue("request", forHTTPHeaderField: "X-Own")
        #expect(try await session.load(request).text == "session request secret")
        // The session's Authorization is for the origin of the task alone.
        #expect(try await session.load(self.request("http://fields.test/moved")).text == "session session none")
        session.invalidateAndCancel()
    }

    @Test func hasTheBodyAsAStreamToo() async throws {
        let session = URLSession.test { $0.protocolClasses = [BodyProtocol.self] }
        #expect(try await session.load(self.request("http://body.test/")).text == "none/none")
        var request = try self.request("http://body.test/", "POST")
        request.httpBody = Data("of the request".utf8)
        #expect(try await session.load(request).text == "of the request/of the request")
        request.httpBodyStream = InputStream(data: Data("streamed".utf8))
        #expect(try await session.load(request).text == "streamed/none")
        session.invalidateAndCancel()
    }

    @Test func hasTheBodyOfAnUpload() async throws {
        let session = URLSession.test { $0.protocolClasses = [BodyProtocol.self] }
        let file = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try Data("of the file".utf8).write(to: file)
        var request = try self.request("http://body.test/", "PUT")
        request.httpBody = Data("ignored".utf8)
        let uploaded = try await session.upload(for: request, from: Data("uploaded".utf8)).0
        #expect(String(decoding: uploaded, as: UTF8.self) == "uploaded/uploaded")
        let fromFile = try await session.upload(for: request, fromFile: file).0
        #expect(String(decoding: fromFile, as: UTF8.self) == "of the file/none")
        try FileManager.default.removeItem(at: file)
        session.invalidateAndCancel()
    }

    /// A protocol that forwards its request, or keeps it, must not send the stream that it has read.
    @Test func bodyIsSentAgainFromItsData() async throws {
        let server = try await WebServer(["/": .text("ok")])
        let forwarding = URLSession.test { $0.protocolClasses = [ForwardingProtocol.self] }
        var request = try self.request(server.url().absoluteString, "POST")
        request.httpBody = Data("forwarded".utf8)
        #expect(try await forwarding.load(request).text == "ok")
        #expect(server.requests.first?.text == "forwarded")
        forwarding.invalidateAndCancel()
    }

    /// Reads the body, then loads its request by a session of its own.
    final class ForwardingProtocol: URLProtocol {
        private let session = URLSession.test()

        override class func canInit(with request: URLRequest) -> Bool { true }

        override func startLoading() {
            self.request.httpBodyStream?.open()
            self.request.httpBodyStream?.close()
            nonisolated(unsafe) let loading = self
            let task = self.session.dataTask(with: self.request) { data, _, _ in
                ProtocolRequestTests.respond(loading, String(decoding: data ?? Data(), as: UTF8.self))
            }
            task.resume()
        }

        override func stopLoading() { self.session.invalidateAndCancel() }
    }
}
