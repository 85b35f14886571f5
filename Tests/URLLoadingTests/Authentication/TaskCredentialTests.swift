import Foundation
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
}
