import Foundation
import Testing
import URLLoading

@Suite("Delegates of challenges", .loading, .timeLimit(.minutes(20)))
struct ChallengeDispatchTests {
    /// Implements only the task's challenge method.
    final class OfTask: NSObject, URLSessionTaskDelegate, Sendable {
        let log = EventLog()
        func urlSession(
            _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
            completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
        ) {
            self.log.add(challenge.protectionSpace.authenticationMethod)
            Policies.trust(challenge, completionHandler)
        }
    }

    /// Implements only the session's challenge method.
    final class OfSession: NSObject, URLSessionDelegate, Sendable {
        let log = EventLog()
        func urlSession(
            _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
            completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
        ) {
            if challenge.isOfTheVariant { return completionHandler(.performDefaultHandling, nil) }
            self.log.add(challenge.protectionSpace.authenticationMethod)
            Policies.trust(challenge, completionHandler)
        }
    }

    @Test func sessionIsAskedAboutTheServersTrust() async throws {
        let server = try await WebServer(tls: Certificates.server(), ["/": .text("hello")])
        let delegate = OfSession()
        let session = URLSession.test(delegate)
        #expect(try await session.load(server.url()).text == "hello")
        #expect(delegate.log.names == [NSURLAuthenticationMethodServerTrust])
        session.invalidateAndCancel()
    }

    @Test func taskDelegateHandlesServerTrustWithoutASessionMethod() async throws {
        let server = try await WebServer(tls: Certificates.server(), ["/": .text("hello")])
        let delegate = OfTask()
        let session = URLSession.test(delegate)
        #expect(try await session.load(server.url()).text == "hello")
        #expect(delegate.log.names == [NSURLAuthenticationMethodServerTrust])
        session.invalidateAndCancel()
    }

    @Test func tasksOwnDelegateIsAskedAboutTheServersTrust() async throws {
        let server = try await WebServer(tls: Certificates.server(), ["/": .text("hello")])
        let delegate = OfTask()
        let session = URLSession.test()
        let (data, _) = try await session.data(from: server.url(), delegate: delegate)
        #expect(data == Data("hello".utf8) && delegate.log.names == [NSURLAuthenticationMethodServerTrust])
        session.invalidateAndCancel()
    }

    @Test func sessionIsNeverAskedForAPassword() async throws {
        let server = try await BasicAuthenticationTests.server()
        let delegate = OfSession()
        let session = URLSession.test(delegate)
        #expect(try await session.load(server.url()).status == 401)
        #expect(delegate.log.names.isEmpty)
        session.invalidateAndCancel()
    }

    @Test func taskIsAskedForAPassword() async throws {
        let server = try await BasicAuthenticationTests.server()
        let recorder = DataRecorder(.credential("user", "passwd"))
        let session = URLSession.test(recorder)
        #expect(try await session.load(server.url()).text == "in")
        #expect(recorder.log.count("challenge HTTPBasic") == 1)
        session.invalidateAndCancel()
    }
}
