import Foundation
import TLSEngine
import Testing
import URLLoading

@Suite("Delegates that answer twice or never", .loading, .timeLimit(.minutes(20)))
struct MisbehavingDelegateTests {
    private func server() async throws -> WebServer {
        let server = try await WebServer(["/": .redirect(307, to: "/asks")])
        server.on("/asks") { request in
            request["Authorization"] == nil
                ? .text("no", ["WWW-Authenticate: Basic realm=\"r\""], status: 401)
                : .text("yes", ["Cache-Control: max-age=60"])
        }
        return server
    }

    @Test func repeatedAnswerCountsOnce() async throws {
        let server = try await self.server()
        var policies = Policies()
        policies.redirect = { _, request, answer in
            answer(request)
            answer(nil)
            DispatchQueue.concurrentPerform(iterations: 8) { _ in answer(request) }
        }
        policies.challenge = { _, answer in
            answer(.useCredential, URLCredential(user: "u", password: "p", persistence: .none))
            answer(.cancelAuthenticationChallenge, nil)
            DispatchQueue.concurrentPerform(iterations: 8) { _ in answer(.rejectProtectionSpace, nil) }
        }
        policies.stream = { answer in
            answer(InputStream(data: Data("body".utf8)))
            answer(nil)
        }
        policies.response = { _, answer in
            for _ in 0..<3 { answer(.allow) }
            answer(.cancel)
        }
        let recorder = DataRecorder(policies)
        let session = URLSession.test(recorder)
        session.uploadTask(withStreamedRequest: .to(server.url(), "PUT")).resume()
        let notes = try await recorder.end()
        #expect(notes.error == nil && notes.data == Data("yes".utf8) && notes.completions == 1)
        #expect(server.requests.count == 3)
        session.invalidateAndCancel()
    }

    enum Question: String, CaseIterable {
        case redirect, challenge, stream, response, trust, identity, caching

        func context() throws -> TLSContext? {
            switch self {
            case .trust: try Certificates.server()
            case .identity: try Certificates.serverAskingForCertificate()
            case .redirect, .challenge, .stream, .response, .caching: nil
            }
        }
    }

    @Test(arguments: Question.allCases)
    func taskWithoutAnAnswerCanBeCancelled(_ question: Question) async throws {
        let server = try await WebServer(tls: question.context(), ["/": .redirect(307, to: "/asks")])
        server.on("/asks", .text("no", ["WWW-Authenticate: Basic realm=\"r\""], status: 401))
        server.on("/plain", .text("hello", ["Cache-Control: max-age=60"]))
        let asked = Gate()
        var policies = question == .trust ? Policies() : Policies.trusting
        switch question {
        case .redirect: policies.redirect = { _, _, _ in asked.open() }
        case .challenge: policies.challenge = { _, _ in asked.open() }
        case .stream: policies.stream = { _ in asked.open() }
        case .response: policies.response = { _, _ in asked.open() }
        case .trust: policies.sessionChallenge = { _, _ in asked.open() }
        case .identity:
            policies.sessionChallenge = { challenge, answer in
                guard challenge.protectionSpace.serverTrust == nil else { return Policies.trust(challenge, answer) }
                asked.open()
            }
        case .caching: policies.cachingAsked = asked
        }
        let recorder = DataRecorder(policies)
        let session = URLSession.test(recorder)
        let path = [.response, .stream, .caching].contains(question) ? "/plain" : "/"
        let task: URLSessionTask =
            question == .stream
            ? session.uploadTask(withStreamedRequest: .to(server.url(path), "PUT"))
            : session.dataTask(with: server.url(path))
        task.resume()
        #expect(await asked.pass())
        #expect(recorder.notes.completions == 0)
        task.cancel()
        let notes = try await recorder.end()
        #expect((notes.error as? URLError)?.code == .cancelled && notes.completions == 1)
        session.invalidateAndCancel()
        #expect(await recorder.log.has("invalid"))
    }

    @Test func delegateMayAnswerAfterTheTaskEnded() async throws {
        let server = try await self.server()
        let kept = Outcome<@Sendable () -> Void>()
        var policies = Policies()
        policies.redirect = { _, request, answer in kept.give { answer(request) } }
        let recorder = DataRecorder(policies)
        let session = URLSession.test(recorder)
        let task = session.dataTask(with: server.url())
        task.resume()
        let answer = try await kept.value()
        task.cancel()
        _ = try await recorder.end()
        answer()
        session.invalidateAndCancel()
        #expect(await recorder.log.has("invalid"))
        answer()
        #expect(server.requests.count == 1 && recorder.notes.completions == 1)
    }

    @Test func delegateMayCancelInEveryCall() async throws {
        let server = try await WebServer(["/": .redirect(307, to: "/there")])
        server.on("/there", .chunked(["one", "two"], ["Cache-Control: max-age=60"]))
        for question in ["redirect", "response", "data", "complete"] {
            var policies = Policies()
            let current = Outcome<URLSessionTask>()
            let cancel: @Sendable () -> Void = { current.now?.cancel() }
            if question == "redirect" {
                policies.redirect = {
                    cancel(); $2($1)
                }
            }
            if question == "response" {
                policies.response = {
                    cancel(); $1(.allow)
                }
            }
            if question == "data" { policies.data = { task, _ in task.cancel() } }
            if question == "complete" { policies.completed = { $0.cancel() } }
            let recorder = DataRecorder(policies)
            let session = URLSession.test(recorder)
            let task = session.dataTask(with: server.url())
            current.give(task)
            task.resume()
            let notes = try await recorder.end()
            #expect(notes.completions == 1, "\(question)")
            if question != "complete" { #expect((notes.error as? URLError)?.code == .cancelled, "\(question)") }
            session.invalidateAndCancel()
            #expect(await recorder.log.has("invalid"))
        }
    }

    @Test func delegateMayCreateAndInvalidateSessions() async throws {
        let server = try await WebServer(["/": .text("hello")])
        let inner = Outcome<Loaded>()
        var policies = Policies()
        policies.completed = { _ in
            let session = URLSession.test()
            session.dataTask(with: server.url()) { inner.give(Loaded(data: $0, response: $1, error: $2)) }.resume()
            session.finishTasksAndInvalidate()
        }
        let recorder = DataRecorder(policies)
        try await recorder.run(server.url())
        #expect(try await inner.value().text == "hello")
    }
}
