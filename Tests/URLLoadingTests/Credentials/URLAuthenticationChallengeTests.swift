import Foundation
import Synchronization
import Testing
import URLLoading

@Suite("Challenges")
struct URLAuthenticationChallengeTests {
    private final class RecordingSender: NSObject, URLAuthenticationChallengeSender, Sendable {
        let answers = Mutex<[String]>([])

        func use(_ credential: URLCredential, for challenge: URLAuthenticationChallenge) {
            self.answers.withLock { $0.append("use \(credential.user ?? "")") }
        }
        func continueWithoutCredential(for challenge: URLAuthenticationChallenge) {
            self.answers.withLock { $0.append("continue") }
        }
        func cancel(_ challenge: URLAuthenticationChallenge) { self.answers.withLock { $0.append("cancel") } }
    }

    @Test func challengeHasItsInitialValues() throws {
        let asker = RecordingSender()
        let space = URLProtectionSpace(host: "a", port: 1, protocol: "http", realm: nil, authenticationMethod: nil)
        let credential = URLCredential(user: "u", password: "p", persistence: .none)
        let url = try #require(URL(string: "http://a"))
        let response = HTTPURLResponse(url: url, statusCode: 401, httpVersion: nil, headerFields: nil)
        let challenge = URLAuthenticationChallenge(
            protectionSpace: space, proposedCredential: credential, previousFailureCount: 2,
            failureResponse: response, error: URLError(.userAuthenticationRequired), sender: asker)
        let other = RecordingSender()
        for (asked, by) in [
            (challenge, asker), (URLAuthenticationChallenge(authenticationChallenge: challenge, sender: other), other),
        ] {
            #expect(asked.protectionSpace == space && asked.proposedCredential == credential)
            #expect(asked.previousFailureCount == 2 && asked.failureResponse === response && asked.sender === by)
            #expect((asked.error as? URLError)?.code == .userAuthenticationRequired)
        }
    }

    @Test func challengeContinuesWithoutACredentialByDefault() throws {
        let asker = RecordingSender()
        let space = URLProtectionSpace(host: "a", port: 1, protocol: "http", realm: nil, authenticationMethod: nil)
        let challenge = URLAuthenticationChallenge(
            protectionSpace: space, proposedCredential: nil, previousFailureCount: 0, failureResponse: nil,
            error: nil, sender: asker)
        challenge.sender?.performDefaultHandling(for: challenge)
        challenge.sender?.rejectProtectionSpaceAndContinue(with: challenge)
        #expect(asker.answers.withLock { $0 } == ["continue", "continue"])
    }

    private func archived(_ challenge: URLAuthenticationChallenge) throws -> URLAuthenticationChallenge {
        let data = try NSKeyedArchiver.archivedData(withRootObject: challenge, requiringSecureCoding: true)
        return try #require(
            try NSKeyedUnarchiver.unarchivedObject(ofClass: URLAuthenticationChallenge.self, from: data))
    }

    @Test func challengeIsDecodedFromAnArchive() throws {
        let space = URLProtectionSpace(host: "a", port: 1, protocol: "http", realm: "r", authenticationMethod: nil)
        let url = try #require(URL(string: "http://a"))
        let errors: [any Error] = [
            URLError(.userAuthenticationRequired, userInfo: [NSLocalizedDescriptionKey: "why"]),
            NSError(domain: "own", code: 7, userInfo: [NSLocalizedDescriptionKey: "why"]),
        ]
        for error in errors {
            let challenge = URLAuthenticationChallenge(
                protectionSpace: space, proposedCredential: URLCredential(user: "u", password: "p", persistence: .none),
                previousFailureCount: 2,
                failureResponse: HTTPURLResponse(url: url, statusCode: 401, httpVersion: nil, headerFields: ["A": "1"]),
                error: error, sender: RecordingSender())
            let back = try self.archived(challenge)
            #expect(back.protectionSpace == space && back.proposedCredential == challenge.proposedCredential)
            #expect(back.previousFailureCount == 2 && back.failureResponse == challenge.failureResponse)
            let read = try #require(back.error.map { $0 as NSError })
            let given = error as NSError
            #expect(read.domain == given.domain && read.code == given.code && read.localizedDescription == "why")
            #expect((back.error is URLError) == (error is URLError))
            back.sender?.cancel(back)
        }
    }

    @Test func bareChallengeIsDecodedFromAnArchive() throws {
        let space = URLProtectionSpace(host: "a", port: 1, protocol: nil, realm: nil, authenticationMethod: nil)
        let back = try self.archived(
            URLAuthenticationChallenge(
                protectionSpace: space, proposedCredential: nil, previousFailureCount: 0, failureResponse: nil,
                error: nil, sender: RecordingSender()))
        #expect(back.protectionSpace == space && back.proposedCredential == nil && back.failureResponse == nil)
        #expect(back.error == nil && back.previousFailureCount == 0)
    }
}
