import Foundation
import Synchronization

/// The sender of a challenge that a session asks: whoever tells it what to do has answered, as by the completion handler;
/// the first answer counts.
final class ChallengeSender: NSObject, URLAuthenticationChallengeSender, Sendable {
    private let receiver = Mutex<OnceAnswer<ChallengeAnswer>?>(nil)

    /// - Parameter answer: takes what the sender is told.
    func answers(to answer: OnceAnswer<ChallengeAnswer>) { self.receiver.withLock { $0 = answer } }

    func use(_ credential: URLCredential, for challenge: URLAuthenticationChallenge) {
        self.answer(.useCredential, credential)
    }

    func continueWithoutCredential(for challenge: URLAuthenticationChallenge) { self.answer(.useCredential, nil) }

    func cancel(_ challenge: URLAuthenticationChallenge) { self.answer(.cancelAuthenticationChallenge, nil) }

    func performDefaultHandling(for challenge: URLAuthenticationChallenge) {
        self.answer(.performDefaultHandling, nil)
    }

    func rejectProtectionSpaceAndContinue(with challenge: URLAuthenticationChallenge) {
        self.answer(.rejectProtectionSpace, nil)
    }

    private func answer(_ disposition: URLSession.AuthChallengeDisposition, _ credential: URLCredential?) {
        let receiver = self.receiver.withLock { $0 }
        receiver?(ChallengeAnswer(disposition: disposition, credential: credential))
    }
}
