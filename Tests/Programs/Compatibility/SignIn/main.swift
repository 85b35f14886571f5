// SignIn URL USER PASSWORD: loads URL, whose server sends a challenge; then again with a wrong password.
import Foundation
import URLLoading

final class SignIn: NSObject, URLSessionDataDelegate, @unchecked Sendable {
    private let user: String
    private let password: String
    private let lock = NSLock()
    private var asked: [String] = []

    init(user: String, password: String) {
        self.user = user
        self.password = password
    }

    var challenges: [String] { self.lock.withLock { self.asked } }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        let space = challenge.protectionSpace
        self.lock.withLock { self.asked.append("\(space.authenticationMethod) \(space.realm ?? "")") }
        guard challenge.previousFailureCount == 0 else {
            completionHandler(.cancelAuthenticationChallenge, nil)
            return
        }
        completionHandler(
            .useCredential, URLCredential(user: self.user, password: self.password, persistence: .forSession))
    }
}

func fail(_ reason: String) -> Never {
    print(reason)
    exit(1)
}

let arguments = CommandLine.arguments
guard arguments.count == 4, let url = URL(string: arguments[1]) else {
    print("usage: SignIn URL USER PASSWORD")
    exit(64)
}

do {
    let right = SignIn(user: arguments[2], password: arguments[3])
    let session = URLSession(configuration: .ephemeral, delegate: right, delegateQueue: nil)
    for _ in 0..<2 {
        let (_, response) = try await session.data(from: url)
        guard (response as? HTTPURLResponse)?.statusCode == 200 else { fail("\(response)") }
    }
    guard right.challenges.count == 1 else { fail("asked: \(right.challenges)") }
    session.invalidateAndCancel()

    let wrong = SignIn(user: arguments[2], password: arguments[3] + "?")
    let another = URLSession(configuration: .ephemeral, delegate: wrong, delegateQueue: nil)
    do {
        let (_, response) = try await another.data(from: url)
        fail("let in with a wrong password: \(response)")
    } catch let error as URLError where error.code == .cancelled || error.code == .userCancelledAuthentication {
        guard wrong.challenges.count == 2 else { fail("asked: \(wrong.challenges)") }
    }
    another.invalidateAndCancel()
    print(right.challenges[0])
} catch {
    fail("failed: \(error)")
}
