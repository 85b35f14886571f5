import Foundation
import URLLoading

/// Answers what a TLS handshake asks, and follows no redirect: a token is for nobody else.
final class AccessDelegate: NSObject, URLSessionTaskDelegate {
    private let access: ControlAccess

    init(_ access: ControlAccess) {
        self.access = access
    }

    func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        let space = challenge.protectionSpace
        switch space.authenticationMethod {
        case NSURLAuthenticationMethodServerTrust:
            guard self.access.isInsecure, let trust = space.serverTrust else { break }
            return completionHandler(.useCredential, URLCredential(trust: trust))
        case NSURLAuthenticationMethodClientCertificate:
            guard let identity = self.access.identity else { break }
            return completionHandler(
                .useCredential, URLCredential(identity: identity, certificates: nil, persistence: .forSession))
        default: break
        }
        completionHandler(.performDefaultHandling, nil)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        completionHandler(nil)
    }
}
