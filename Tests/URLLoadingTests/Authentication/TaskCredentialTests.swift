import Foundation
import Synchronization
import Testing
import URLLoading

@Suite("Credential storages asked for a task", .loading, .timeLimit(.minutes(20)))
struct TaskCredentialTests {
    private let space = URLProtectionSpace(
        host: "a.test", port: 80, protocol: "http", realm: "r", authenticationMethod: NSURLAuthenticationMethodHTTPBasic
    )

    private func task(_ session: URLSession) -> URLSessionTask { session.dataTask(with: URL(filePath: "/")) }

    @Test func taskCredentialsAreSetFoundAndRemoved() async throws {
        let session = URLSession.test()
        let task = self.task(session)
        let storage = URLCredentialStorage()
        let credential = URLCredential(user: "u", password: "p", persistence: .forSession)
        storage.set(credential, for: self.space, task: task)
        let found = Outcome<[String: URLCredential]?>()
        storage.getCredentials(for: self.space, task: task) { found.give($0) }
        #expect(try await found.value() == ["u": credential])
        #expect(await storage.credentials(for: self.space, task: task) == ["u": credential])
        storage.remove(credential, for: self.space, options: nil, task: task)
        #expect(await storage.credentials(for: self.space, task: task) == nil)
        session.invalidateAndCancel()
    }

    @Test func taskHasADefaultCredential() async throws {
        let session = URLSession.test()
        let task = self.task(session)
        let storage = URLCredentialStorage()
        let none = Outcome<Bool>()
        storage.getDefaultCredential(for: self.space, task: task) { none.give($0 == nil) }
        #expect(try await none.value())
        let credential = URLCredential(user: "u", password: "p", persistence: .forSession)
        storage.setDefaultCredential(credential, for: self.space, task: task)
        let found = Outcome<Bool>()
        storage.getDefaultCredential(for: self.space, task: task) { found.give($0 == credential) }
        #expect(try await found.value())
        session.invalidateAndCancel()
    }

    /// Has a credential for each task, and records what is stored for one.
    private final class TaskStorage: URLCredentialStorage, @unchecked Sendable {
        private let state = Mutex<(asked: [Int], stored: [String])>(([], []))
        private let credential: URLCredential?

        var asked: [Int] { self.state.withLock { $0.asked } }
        var stored: [String] { self.state.withLock { $0.stored } }

        init(_ credential: URLCredential?) {
            self.credential = credential
            super.init()
        }

        override func getDefaultCredential(
            for space: URLProtectionSpace, task: URLSessionTask,
            completionHandler: @escaping @Sendable (URLCredential?) -> Void
        ) {
            self.state.withLock { $0.asked.append(task.taskIdentifier) }
            let credential = self.credential
            DispatchQueue.global().async {
                // The second call has no effect.
                for _ in 0..<2 { completionHandler(credential) }
            }
        }

        override func set(_ credential: URLCredential, for protectionSpace: URLProtectionSpace, task: URLSessionTask) {
            self.state.withLock { $0.stored.append("\(credential.user ?? "") \(protectionSpace.realm ?? "")") }
            super.set(credential, for: protectionSpace, task: task)
        }
    }

    @Test func taskUsesTheCredentialOfACustomStorage() async throws {
        let server = try await BasicAuthenticationTests.server()
        let storage = TaskStorage(URLCredential(user: "user", password: "passwd", persistence: .forSession))
        let recorder = DataRecorder()
        let session = URLSession.test(recorder) { $0.urlCredentialStorage = storage }
        let task = session.dataTask(with: server.url())
        task.resume()
        let notes = try await recorder.end()
        #expect(notes.data == Data("in".utf8) && notes.challenges.map(\.proposedCredential?.user) == ["user"])
        #expect(storage.asked == [task.taskIdentifier] && storage.stored == ["user r"])
        #expect(server.requests.count == 2)
        session.invalidateAndCancel()
    }

    @Test func credentialOfTheDelegateIsStoredForItsTask() async throws {
        let server = try await BasicAuthenticationTests.server()
        let storage = TaskStorage(nil)
        let recorder = DataRecorder(.credential("user", "passwd", .forSession))
        let notes = try await recorder.run(server.url()) { $0.urlCredentialStorage = storage }
        #expect(notes.data == Data("in".utf8) && notes.challenges.first?.proposedCredential == nil)
        #expect(storage.stored == ["user r"] && storage.allCredentials.count == 1)
    }

    @Test(arguments: [URLCredential.Persistence.forSession, .permanent])
    func refusedCredentialIsNotStored(_ persistence: URLCredential.Persistence) async throws {
        let server = try await BasicAuthenticationTests.server()
        let storage = TaskStorage(nil)
        var policies = Policies()
        policies.challenge = { challenge, answer in
            let password = challenge.previousFailureCount == 0 ? "wrong" : "passwd"
            if challenge.previousFailureCount == 1 { #expect(storage.stored.isEmpty) }
            answer(.useCredential, URLCredential(user: "user", password: password, persistence: persistence))
        }
        let notes = try await DataRecorder(policies).run(server.url()) { $0.urlCredentialStorage = storage }
        #expect(notes.data == Data("in".utf8) && notes.challenges.count == 2)
        #expect(storage.stored == ["user r"])
        #expect(storage.allCredentials.values.first?["user"]?.password == "passwd")
    }

    /// Neither response says anything about the credential.
    @Test(arguments: [503, 417])
    func credentialIsNotStoredBeforeItsServerHasAcceptedIt(_ status: Int) async throws {
        let server = try await WebServer()
        server.onHead("/") { request in
            let isRefused = request["Authorization"] == nil || (status == 417 && request["Expect"] == nil)
            return isRefused
                ? .text("who?", ["WWW-Authenticate: Basic realm=\"r\""], status: 401) : .text("no", status: status)
        }
        let storage = TaskStorage(nil)
        var policies = Policies()
        policies.challenge = { challenge, answer in
            guard challenge.previousFailureCount == 0 else { return answer(.cancelAuthenticationChallenge, nil) }
            answer(.useCredential, URLCredential(user: "user", password: "wrong", persistence: .forSession))
        }
        let request: URLRequest =
            status == 417
            ? .to(server.url(), "PUT", ["Expect": "100-continue"], body: "a body") : .to(server.url())
        let notes = try await DataRecorder(policies).run(request) { $0.urlCredentialStorage = storage }
        #expect(notes.challenges.count == (status == 417 ? 2 : 1) && storage.stored.isEmpty)
    }

    @Test(.onlyWithHTTP11, .choosesItsConnections, arguments: [false, true])
    func credentialOfAProxyIsStoredOnceItIsAccepted(_ isTunnel: Bool) async throws {
        let proxy = try await WebServer(["/": .text("through")])
        let isRight: @Sendable (ReceivedRequest) -> Answer? = {
            $0["Proxy-Authorization"] == "Basic dXNlcjpwYXNzd2Q="
                ? nil : .text("who?", ["Proxy-Authenticate: Basic realm=\"p\""], status: 407)
        }
        let target = isTunnel ? "origin.example:80" : "http://origin.example/"
        proxy.on(target) { isRight($0) ?? (isTunnel ? .head(200) : .text("through")) }
        let storage = TaskStorage(nil)
        var policies = Policies()
        policies.challenge = { challenge, answer in
            let password = challenge.previousFailureCount == 0 ? "wrong" : "passwd"
            if challenge.previousFailureCount == 1 { #expect(storage.stored.isEmpty) }
            answer(.useCredential, URLCredential(user: "user", password: password, persistence: .forSession))
        }
        let recorder = DataRecorder(policies)
        let session = URLSession.test(recorder) {
            $0.urlCredentialStorage = storage
            $0.connectionProxyDictionary = ["HTTPEnable": 1, "HTTPProxy": "127.0.0.1", "HTTPPort": proxy.port]
        }
        let url = try #require(URL(string: "http://origin.example/"))
        // The proxy is asked for a tunnel where a request could be upgraded.
        session.dataTask(with: .to(url, "GET", isTunnel ? ["Upgrade": "x", "Connection": "upgrade"] : [:])).resume()
        let notes = try await recorder.end()
        #expect(notes.challenges.map(\.previousFailureCount) == [0, 1] && notes.error == nil)
        #expect(storage.stored == ["user p"])
        session.invalidateAndCancel()
    }

    /// Answers when the test calls the handler.
    private final class LateStorage: URLCredentialStorage, @unchecked Sendable {
        let asked = Outcome<@Sendable (URLCredential?) -> Void>()

        override func getDefaultCredential(
            for space: URLProtectionSpace, task: URLSessionTask,
            completionHandler: @escaping @Sendable (URLCredential?) -> Void
        ) { self.asked.give(completionHandler) }
    }

    /// Cancels the task while the storage has not answered, and lets it answer after the task's end.
    private func answerLate(
        _ recorder: Recorder, _ makeTask: (URLSession) -> URLSessionTask
    ) async throws -> [String] {
        let server = try await WebServer(["/": .text("hello")])
        let storage = LateStorage()
        let session = URLSession.test(recorder) { $0.urlCredentialStorage = storage }
        let task = makeTask(session)
        task.resume()
        let answer = try await storage.asked.value()
        task.cancel()
        #expect((try await recorder.end().error as? URLError)?.code == .cancelled)
        answer(nil)
        // What the answer causes comes before the end of another task.
        #expect(try await session.load(server.url()).text == "hello")
        session.invalidateAndCancel()
        return recorder.notes.challenges.map(\.protectionSpace.authenticationMethod)
    }

    @Test func cancelledTaskIsNotAskedForACertificate() async throws {
        let server = try await WebServer(tls: Certificates.serverAskingForCertificate(), ["/": .text("hello")])
        let asked = try await self.answerLate(DataRecorder(.trusting)) { $0.dataTask(with: server.url()) }
        #expect(!asked.contains(NSURLAuthenticationMethodClientCertificate))
    }

    @Test func cancelledWebSocketIsNotAskedForAPassword() async throws {
        let server = try await ConnectionServer { stream in
            _ = try await stream.head()
            try await stream.refuse(401, ["WWW-Authenticate: Basic realm=\"r\""])
        }
        let asked = try await self.answerLate(ConnectionRecorder()) { $0.webSocketTask(with: server.url()) }
        #expect(asked.isEmpty)
    }

    /// Has no credential, and answers when the test allows it.
    private final class BlockingStorage: URLCredentialStorage, @unchecked Sendable {
        let isAsked = Outcome<Bool>()
        let mayAnswer = DispatchSemaphore(value: 0)
        let wasAllowed = Outcome<Bool>()

        override func defaultCredential(for space: URLProtectionSpace) -> URLCredential? {
            self.isAsked.give(true)
            self.wasAllowed.give(self.mayAnswer.wait(timeout: .now() + 120) == .success)
            return nil
        }
    }

    @Test func blockedStorageStopsNoOtherTask() async throws {
        let guarded = try await BasicAuthenticationTests.server()
        let server = try await WebServer(["/": .text("hello")])
        let storage = BlockingStorage()
        let session = URLSession.test { $0.urlCredentialStorage = storage }
        async let refused = session.load(guarded.url())
        _ = try await storage.isAsked.value()
        let text = try? await session.load(server.url()).text
        storage.mayAnswer.signal()
        #expect(try await storage.wasAllowed.value() && text == "hello")
        #expect(try await refused.status == 401)
        session.invalidateAndCancel()
    }

    @Test func asyncFormsAskTheMethodsForATask() async throws {
        let session = URLSession.test()
        let credential = URLCredential(user: "user", password: "passwd", persistence: .forSession)
        final class OnceStorage: URLCredentialStorage, @unchecked Sendable {
            override func getDefaultCredential(
                for space: URLProtectionSpace, task: URLSessionTask,
                completionHandler: @escaping @Sendable (URLCredential?) -> Void
            ) { completionHandler(URLCredential(user: "own", password: "p", persistence: .none)) }
        }
        let storage = OnceStorage()
        storage.set(credential, for: self.space)
        #expect(await storage.defaultCredential(for: self.space, task: self.task(session))?.user == "own")
        session.invalidateAndCancel()
    }
}
