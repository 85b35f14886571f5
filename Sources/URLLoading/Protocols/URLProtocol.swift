import Foundation
import Synchronization

/// A way to load that a program adds: subclasses are asked whether they load a request before the built-in schemes are.
///
/// `startLoading` and `stopLoading` are called one after the other on a queue of the load's own; `client` may be called
/// from any thread.
open class URLProtocol: NSObject {
    private static let registered = Mutex<[URLProtocol.Type]>([])

    private let asked: URLRequest
    private let kept: CachedURLResponse?
    private let listener: (any URLProtocolClient)?
    private var load: URLSessionTask?

    public required init(
        request: URLRequest, cachedResponse: CachedURLResponse?, client: (any URLProtocolClient)?
    ) {
        self.asked = request
        self.kept = cachedResponse
        self.listener = client
        self.load = nil
        super.init()
    }

    /// - Parameter task: the protocol loads its current request.
    public required convenience init(
        task: URLSessionTask, cachedResponse: CachedURLResponse?, client: (any URLProtocolClient)?
    ) {
        let request = task.currentRequest ?? URLRequest(url: URL(fileURLWithPath: "/"))
        self.init(request: request, cachedResponse: cachedResponse, client: client)
        self.load = task
    }

    open var client: (any URLProtocolClient)? { self.listener }
    open var request: URLRequest { self.asked }
    open var cachedResponse: CachedURLResponse? { self.kept }
    /// `nil` for a protocol that was made for a request alone.
    open var task: URLSessionTask? { self.load }

    // MARK: For subclasses

    /// Whether this class loads such requests; `false` here.
    open class func canInit(with request: URLRequest) -> Bool { false }

    /// Whether this class loads for such tasks: by its request here.
    open class func canInit(with task: URLSessionTask) -> Bool {
        task.currentRequest.map { self.canInit(with: $0) } ?? false
    }

    /// The request in the form under which it is loaded and kept: unchanged here.
    open class func canonicalRequest(for request: URLRequest) -> URLRequest { request }

    /// Whether a cache may answer one with what it has for the other: where their canonical forms are equal here.
    open class func requestIsCacheEquivalent(_ a: URLRequest, to b: URLRequest) -> Bool {
        self.canonicalRequest(for: a) == self.canonicalRequest(for: b)
    }

    /// Begins. Fails the load here: every subclass has its own.
    open func startLoading() {
        self.client?.urlProtocol(
            self,
            didFailWithError: URLError(
                .unsupportedURL,
                userInfo: [
                    NSLocalizedDescriptionKey: "\(type(of: self)) does not override startLoading()."
                ]))
    }

    /// Ends, once, after `startLoading`: because everything was loaded, or because nobody wants it any more.
    open func stopLoading() {}

    // MARK: Notes on requests

    /// What was attached to the request under this key.
    open class func property(forKey key: String, in request: URLRequest) -> Any? { request.properties[key] }

    /// Attaches something to a request; it goes along with its copies, and is no part of its equality.
    open class func setProperty(_ value: Any, forKey key: String, in request: NSMutableURLRequest) {
        request.value.properties[key] = value
    }

    open class func removeProperty(forKey key: String, in request: NSMutableURLRequest) {
        request.value.properties[key] = nil
    }

    // MARK: Registration

    /// Lets the shared session ask this class; the one that was registered last is asked first.
    /// - Returns: `false` for what is no subclass of `URLProtocol`.
    @discardableResult
    open class func registerClass(_ protocolClass: AnyClass) -> Bool {
        guard let type = protocolClass as? URLProtocol.Type else { return false }
        self.registered.withLock { classes in
            classes.removeAll { $0 == type }
            classes.insert(type, at: 0)
        }
        return true
    }

    open class func unregisterClass(_ protocolClass: AnyClass) {
        self.registered.withLock { classes in classes.removeAll { $0 == protocolClass } }
    }

    static var registeredClasses: [URLProtocol.Type] { self.registered.withLock { $0 } }
}

/// As in Foundation: subclasses have state that changes while they load.
@available(*, unavailable)
extension URLProtocol: @unchecked Sendable {}

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
