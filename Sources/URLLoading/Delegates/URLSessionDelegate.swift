import Foundation

/// Hears what concerns a session as a whole. Every method may be left out; of a method with a completion handler its
/// asynchronous twin can be written instead.
///
/// Called on the session's delegate queue; asynchronous methods where their class wants them.
public protocol URLSessionDelegate: NSObjectProtocol, Sendable {
    /// The last message of a session.
    /// - Parameter error: `nil` where the session was invalidated on request.
    func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?)

    /// A TLS handshake asks whether the server is trusted, or for a certificate of ours. Left out, the task's method is
    /// asked; `completionHandler` may be called from any thread, and counts once.
    func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void)

    func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge
    ) async -> (URLSession.AuthChallengeDisposition, URLCredential?)

    /// Of background sessions, which are not there yet: never called.
    func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession)
}

extension URLSessionDelegate {
    public func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) { LeftOut.call() }

    public func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        LeftOut.call()
    }

    public func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge
    ) async -> (URLSession.AuthChallengeDisposition, URLCredential?) {
        LeftOut.call()
        return (.performDefaultHandling, nil)
    }

    public func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession) {}
}
