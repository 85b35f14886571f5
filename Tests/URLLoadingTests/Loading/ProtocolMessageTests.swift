import Foundation
import Testing
import URLLoading

@Suite("Messages of a program's protocols to their session", .loading, .timeLimit(.minutes(20)))
struct ProtocolMessageTests {
    /// Performs the action named by the first part of the path.
    final class ScriptedProtocol: URLProtocol {
        static let log = EventLog()

        override class func canInit(with request: URLRequest) -> Bool { request.url?.host() == "acts.test" }

        override class func canonicalRequest(for request: URLRequest) -> URLRequest {
            var canonical = request
            canonical.setValue("yes", forHTTPHeaderField: "X-Canonical")
            return canonical
        }

        private func respond(_ url: URL, _ text: String, _ fields: [String: String] = [:]) {
            guard
                let response = HTTPURLResponse(url: url, statusCode: 200, httpVersion: "HTTP/1.1", headerFields: fields)
            else { return }
            self.client?.urlProtocol(self, didReceive: response, cacheStoragePolicy: .allowed)
            self.client?.urlProtocol(self, didLoad: Data(text.utf8))
            self.client?.urlProtocolDidFinishLoading(self)
        }

        override func startLoading() {
            guard let url = self.request.url else { return }
            Self.log.add("start \(url.path)")
            switch url.path {
            case "/redirect": self.redirect(url)
            case "/challenge": self.challenge(url)
            case "/cached": self.giveCached(url)
            case "/hang": break
            case "/task": self.respond(url, self.task?.originalRequest?.url == url ? "mine" : "none")
            default: self.respond(url, self.request.value(forHTTPHeaderField: "X-Canonical") ?? "no")
            }
        }

        private func redirect(_ url: URL) {
            guard let target = URL(string: "http://acts.test/there"),
                let response = HTTPURLResponse(
                    url: url, statusCode: 302, httpVersion: "HTTP/1.1", headerFields: ["Location": "/there"])
            else { return }
            self.client?.urlProtocol(self, wasRedirectedTo: URLRequest(url: target), redirectResponse: response)
            // Some protocol classes load with a session of their own and cancel its task here.
            self.client?.urlProtocol(self, didFailWithError: CocoaError(.userCancelled))
        }

        private func challenge(_ url: URL) {
            let space = URLProtectionSpace(
                host: "acts.test", port: 80, protocol: "http", realm: "r",
                authenticationMethod: NSURLAuthenticationMethodHTTPBasic)
            let challenge = URLAuthenticationChallenge(
                protectionSpace: space, proposedCredential: nil, previousFailureCount: 0, failureResponse: nil,
                error: nil, sender: RecordingSender { [weak self] in self?.respond(url, $0) })
            self.client?.urlProtocol(self, didReceive: challenge)
        }

        private func giveCached(_ url: URL) {
            if let cached = self.cachedResponse {
                self.client?.urlProtocol(self, cachedResponseIsValid: cached)
            } else {
                self.respond(url, "fresh", ["Cache-Control": "max-age=0"])
            }
        }

        override func stopLoading() { Self.log.add("stop \(self.request.url?.path ?? "")") }
    }

    /// Responds with the user of the received credential.
    final class RecordingSender: NSObject, URLAuthenticationChallengeSender, @unchecked Sendable {
        let work: (String) -> Void

        init(_ work: @escaping (String) -> Void) { self.work = work }

        func use(_ credential: URLCredential, for challenge: URLAuthenticationChallenge) {
            self.work(credential.user ?? "")
        }
        func continueWithoutCredential(for challenge: URLAuthenticationChallenge) { self.work("nobody") }
        func cancel(_ challenge: URLAuthenticationChallenge) { self.work("cancelled") }
    }

    private func session(_ delegate: (any URLSessionDelegate)? = nil) -> URLSession {
        URLSession.test(delegate) { $0.protocolClasses = [ScriptedProtocol.self] }
    }

    private func url(_ path: String) throws -> URL { try #require(URL(string: "http://acts.test\(path)")) }

    @Test func requestIsLoadedInItsCanonicalForm() async throws {
        let session = self.session()
        #expect(try await session.load(self.url("/plain")).text == "yes")
        #expect(try await session.load(self.url("/task")).text == "mine")
        session.invalidateAndCancel()
    }

    @Test func protocolMayRedirect() async throws {
        for follows in [true, false] {
            var policies = Policies()
            policies.redirect = { $2(follows ? $1 : nil) }
            let recorder = DataRecorder(policies)
            let session = self.session(recorder)
            session.dataTask(with: try self.url("/redirect")).resume()
            let notes = try await recorder.end()
            #expect(notes.redirects.first?.request.url == (try self.url("/there")) && notes.error == nil)
            #expect((notes.response as? HTTPURLResponse)?.statusCode == (follows ? 200 : 302))
            #expect(notes.data == Data(follows ? "yes".utf8 : "".utf8))
            session.invalidateAndCancel()
        }
    }

    @Test func protocolMayChallenge() async throws {
        let recorder = DataRecorder(.credential("me", "p"))
        let session = self.session(recorder)
        #expect(try await session.load(self.url("/challenge")).text == "me")
        #expect(recorder.log.count("challenge HTTPBasic") == 1)
        let silent = self.session()
        #expect(try await silent.load(self.url("/challenge")).text == "nobody")
        session.invalidateAndCancel()
        silent.invalidateAndCancel()
    }

    @Test func protocolMayReportAValidCachedResponse() async throws {
        let session = self.session()
        #expect(try await session.load(self.url("/cached")).text == "fresh")
        #expect(session.configuration.urlCache?.cachedResponse(for: URLRequest(url: try self.url("/cached"))) != nil)
        #expect(try await session.load(self.url("/cached")).text == "fresh")
        session.invalidateAndCancel()
    }

    @Test func protocolIsStoppedOnce() async throws {
        let session = self.session()
        _ = try await session.load(self.url("/once"))
        #expect(await ScriptedProtocol.log.has("stop /once"))
        let outcome = Outcome<URLError.Code?>()
        let task = session.dataTask(with: try self.url("/hang")) { outcome.give(($2 as? URLError)?.code) }
        task.resume()
        #expect(await ScriptedProtocol.log.has("start /hang"))
        task.cancel()
        #expect(try await outcome.value() == .cancelled)
        #expect(await ScriptedProtocol.log.has("stop /hang"))
        #expect(ScriptedProtocol.log.count("stop /once") == 1 && ScriptedProtocol.log.count("stop /hang") == 1)
        session.invalidateAndCancel()
    }

    /// Only the shared session uses this class, which gets the task instead of the request.
    final class RegisteredProtocol: URLProtocol {
        override class func canInit(with request: URLRequest) -> Bool { false }
        override class func canInit(with task: URLSessionTask) -> Bool {
            task.currentRequest?.url?.host() == "registered.test"
        }
        override func startLoading() {
            guard let url = self.request.url else { return }
            let response = URLResponse(url: url, mimeType: "a/b", expectedContentLength: 0, textEncodingName: nil)
            self.client?.urlProtocol(self, didReceive: response, cacheStoragePolicy: .notAllowed)
            self.client?.urlProtocolDidFinishLoading(self)
        }
    }

    @Test func registeredClassServesTheSharedSession() async throws {
        let url = try #require(URL(string: "odd://registered.test/"))
        #expect(URLProtocol.registerClass(RegisteredProtocol.self) && !URLProtocol.registerClass(NSString.self))
        let session = URLSession.test()
        #expect(try await session.load(url).code == .unsupportedURL)
        #expect(try await URLSession.shared.load(url).response?.mimeType == "a/b")
        URLProtocol.unregisterClass(RegisteredProtocol.self)
        #expect(try await URLSession.shared.load(url).code == .unsupportedURL)
        session.invalidateAndCancel()
    }

    @Test func propertiesOfARequestAreKept() throws {
        let request = NSMutableURLRequest(url: try self.url("/"))
        URLProtocol.setProperty(7, forKey: "number", in: request)
        let copy = request as URLRequest
        #expect(URLProtocol.property(forKey: "number", in: copy) as? Int == 7)
        URLProtocol.removeProperty(forKey: "number", in: request)
        #expect(URLProtocol.property(forKey: "number", in: request as URLRequest) == nil)
        #expect(URLProtocol.property(forKey: "number", in: copy) as? Int == 7)
        #expect(ScriptedProtocol.requestIsCacheEquivalent(copy, to: request as URLRequest))
    }
}
