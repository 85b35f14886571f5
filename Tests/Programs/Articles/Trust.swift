import Foundation
import URLLoading

/// The code of the article about challenges and trust, as it is printed there.
enum Trust {
    final class Passwords: NSObject, URLSessionTaskDelegate {
        func urlSession(
            _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge
        ) async -> (URLSession.AuthChallengeDisposition, URLCredential?) {
            guard challenge.previousFailureCount == 0 else { return (.cancelAuthenticationChallenge, nil) }
            let credential = URLCredential(user: "mary", password: "open sesame", persistence: .forSession)
            return (.useCredential, credential)
        }
    }

    final class OwnServer: NSObject, URLSessionDelegate {
        let certificate: Data

        init(certificate: Data) { self.certificate = certificate }

        func urlSession(
            _ session: URLSession, didReceive challenge: URLAuthenticationChallenge
        ) async -> (URLSession.AuthChallengeDisposition, URLCredential?) {
            guard let trust = challenge.protectionSpace.serverTrust else { return (.performDefaultHandling, nil) }
            guard trust.certificates.first == self.certificate else { return (.cancelAuthenticationChallenge, nil) }
            return (.useCredential, URLCredential(trust: trust))
        }
    }

    final class OwnAuthority: NSObject, URLSessionDelegate {
        let authority: Data

        init(authority: Data) { self.authority = authority }

        func urlSession(
            _ session: URLSession, didReceive challenge: URLAuthenticationChallenge
        ) async -> (URLSession.AuthChallengeDisposition, URLCredential?) {
            guard let trust = challenge.protectionSpace.serverTrust else { return (.performDefaultHandling, nil) }
            do {
                try trust.evaluate(anchors: [self.authority])
                return (.useCredential, URLCredential(trust: trust))
            } catch {
                return (.rejectProtectionSpace, nil)
            }
        }
    }

    final class ClientCertificate: NSObject, URLSessionDelegate {
        let identity: ClientIdentity

        init(pem: Data, key: Data) throws { self.identity = try ClientIdentity(certificates: pem, key: key) }

        func urlSession(
            _ session: URLSession, didReceive challenge: URLAuthenticationChallenge
        ) async -> (URLSession.AuthChallengeDisposition, URLCredential?) {
            guard challenge.protectionSpace.authenticationMethod == NSURLAuthenticationMethodClientCertificate else {
                return (.performDefaultHandling, nil)
            }
            return (.useCredential, URLCredential(identity: self.identity, certificates: nil, persistence: .forSession))
        }
    }
}
