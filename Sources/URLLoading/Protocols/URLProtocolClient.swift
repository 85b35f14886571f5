import Foundation

/// Who hears what a `URLProtocol` loads: the loading system. For any thread; what comes after the end is ignored.
public protocol URLProtocolClient: NSObjectProtocol, Sendable {
    /// The load goes on with `request`, if the task's delegate wants it to: this protocol is stopped then.
    func urlProtocol(
        _ protocol: URLProtocol, wasRedirectedTo request: URLRequest, redirectResponse: URLResponse)

    /// The cached response that the protocol was made with is the answer.
    func urlProtocol(_ protocol: URLProtocol, cachedResponseIsValid cachedResponse: CachedURLResponse)

    /// - Parameter policy: whether the response is kept when it is whole.
    func urlProtocol(
        _ protocol: URLProtocol, didReceive response: URLResponse, cacheStoragePolicy policy: URLCache.StoragePolicy)

    /// More of the content. May come many times, and waits while 8 MiB are there that nobody has taken: for the request's
    /// timeout at most if nothing is taken meanwhile, and not at all on the delegate queue. When 64 MiB wait the load
    /// fails with `URLError.dataLengthExceedsMaximum`; a single piece may be of any length.
    func urlProtocol(_ protocol: URLProtocol, didLoad data: Data)

    func urlProtocolDidFinishLoading(_ protocol: URLProtocol)

    func urlProtocol(_ protocol: URLProtocol, didFailWithError error: any Error)

    /// The delegate's answer goes to the challenge's sender.
    func urlProtocol(_ protocol: URLProtocol, didReceive challenge: URLAuthenticationChallenge)

    /// The answer to the challenge is not wanted any more.
    func urlProtocol(_ protocol: URLProtocol, didCancel challenge: URLAuthenticationChallenge)
}
