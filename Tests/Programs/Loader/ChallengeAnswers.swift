import Foundation
import URLLoading

/// Answers to challenges.
struct ChallengeAnswers: Sendable {
    let password: URLCredential?
    /// Every other method of a password is rejected; `nil` for none.
    let only: String?
    let tries: Int
    let identity: URLCredential?
    let trustsAnyone: Bool
    let pin: Data?

    func answer(
        _ challenge: URLAuthenticationChallenge
    ) -> (URLSession.AuthChallengeDisposition, URLCredential?) {
        switch challenge.protectionSpace.authenticationMethod {
        case NSURLAuthenticationMethodServerTrust: return self.judge(challenge.protectionSpace.serverTrust)
        case NSURLAuthenticationMethodClientCertificate:
            return self.identity.map { (.useCredential, $0) } ?? (.performDefaultHandling, nil)
        default:
            guard let password else { return (.performDefaultHandling, nil) }
            if let only, challenge.protectionSpace.authenticationMethod != only { return (.rejectProtectionSpace, nil) }
            guard challenge.previousFailureCount < self.tries else { return (.cancelAuthenticationChallenge, nil) }
            return (.useCredential, password)
        }
    }

    private func judge(_ trust: ServerTrust?) -> (URLSession.AuthChallengeDisposition, URLCredential?) {
        guard let trust else { return (.performDefaultHandling, nil) }
        if let pin {
            guard trust.certificates.first == pin else { return (.cancelAuthenticationChallenge, nil) }
            return (.useCredential, URLCredential(trust: trust))
        }
        return self.trustsAnyone ? (.useCredential, URLCredential(trust: trust)) : (.performDefaultHandling, nil)
    }
}
