import Foundation
import Synchronization

/// A loading mechanism that a program adds. Subclasses are asked whether they load a request before the built-in schemes.
///
/// Initializers, `startLoading` and `stopLoading` of all protocols are called one at a time, on any thread without a run loop;
/// `client` may be called from any thread. Not `Sendable`, because subclasses have mutable state. A subclass may be, as one that is a session's
/// delegate too must: such as `class Forwarder: URLProtocol, URLSessionDataDelegate, @unchecked Sendable`.
open class URLProtocol: NSObject {
    private static let registered = Mutex<[URLProtocol.Type]>([])

    private let originalRequest: URLRequest
    private let storedResponse: CachedURLResponse?
    private let protocolClient: (any URLProtocolClient)?
    private var sessionTask: URLSessionTask?

    public required init(
        request: URLRequest, cachedResponse: CachedURLResponse?, client: (any URLProtocolClient)?
    ) {
        self.originalRequest = request
        self.storedResponse = cachedResponse
        self.protocolClient = client
        self.sessionTask = nil
        super.init()
    }

    /// - Parameter task: the protocol loads its current request.
    public required convenience init(
        task: URLSessionTask, cachedResponse: CachedURLResponse?, client: (any URLProtocolClient)?
    ) {
        let request = task.currentRequest ?? URLRequest(url: URL(fileURLWithPath: "/"))
        self.init(request: request, cachedResponse: cachedResponse, client: client)
        self.sessionTask = task
    }

    open var client: (any URLProtocolClient)? { self.protocolClient }
    /// With the fields of `httpAdditionalHeaders`. `httpBodyStream` has the body of every task whose body is data or a
    /// file; data are in `httpBody` too.
    open var request: URLRequest { self.originalRequest }
    open var cachedResponse: CachedURLResponse? { self.storedResponse }
    /// `nil` for a protocol created with a request alone.
    open var task: URLSessionTask? { self.sessionTask }

    // MARK: For subclasses

    /// Whether this class loads such requests. Default: `false`.
    open class func canInit(with request: URLRequest) -> Bool { false }

    /// Whether this class loads for such tasks. Default: decided by the task's request.
    open class func canInit(with task: URLSessionTask) -> Bool {
        task.currentRequest.map { self.canInit(with: $0) } ?? false
    }

    /// The canonical form of a request, which is loaded and cached. Default: unchanged.
    open class func canonicalRequest(for request: URLRequest) -> URLRequest { request }

    /// Whether a cached response to one request answers the other. Default: if their canonical forms are equal.
    open class func requestIsCacheEquivalent(_ a: URLRequest, to b: URLRequest) -> Bool {
        self.canonicalRequest(for: a) == self.canonicalRequest(for: b)
    }

    /// Starts loading. Subclasses must override it; this one fails the load.
    open func startLoading() {
        self.client?.urlProtocol(
            self,
            didFailWithError: URLError(
                .unsupportedURL,
                userInfo: [
                    NSLocalizedDescriptionKey: "\(type(of: self)) does not override startLoading()."
                ]))
    }

    /// Stops loading. Called once after `startLoading`: after the load has completed or was cancelled.
    open func stopLoading() {}

    // MARK: Properties of requests

    /// The property attached to the request under this key.
    open class func property(forKey key: String, in request: URLRequest) -> Any? { request.properties[key] }

    /// Attaches a property to a request; copies keep it, and equality ignores it.
    open class func setProperty(_ value: Any, forKey key: String, in request: NSMutableURLRequest) {
        request.value.properties[key] = value
    }

    open class func removeProperty(forKey key: String, in request: NSMutableURLRequest) {
        request.value.properties[key] = nil
    }

    // MARK: Registration

    /// Registers the class with the shared session; the class registered last is asked first.
    /// - Returns: `false` if the class is not a subclass of `URLProtocol`.
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

/// The loading system, as a `URLProtocol` sees it. Callable from any thread; calls after the end are ignored.
public protocol URLProtocolClient: NSObjectProtocol, Sendable {
    /// If the task's delegate allows the redirect, the load continues with `request` and this protocol is stopped. From
    /// `http` and `https` no redirect leads to the built-in schemes `file` and `data`, unless `redirectResponse` is no
    /// `HTTPURLResponse`. After 20 redirects the load fails.
    func urlProtocol(
        _ protocol: URLProtocol, wasRedirectedTo request: URLRequest, redirectResponse: URLResponse)

    /// The cached response passed to the protocol's initializer is valid and completes the load.
    func urlProtocol(_ protocol: URLProtocol, cachedResponseIsValid cachedResponse: CachedURLResponse)

    /// - Parameter policy: whether the complete response is cached.
    func urlProtocol(
        _ protocol: URLProtocol, didReceive response: URLResponse, cacheStoragePolicy policy: URLCache.StoragePolicy)

    /// The next piece of the content, of any length. Blocks while more than 8 MiB are unconsumed, for the request's timeout
    /// at most if nothing is consumed meanwhile, and never on the delegate queue. Above 64 MiB the load fails with
    /// `URLError.dataLengthExceedsMaximum`.
    func urlProtocol(_ protocol: URLProtocol, didLoad data: Data)

    func urlProtocolDidFinishLoading(_ protocol: URLProtocol)

    /// Errors of `NSURLErrorDomain` get the URL of the request if they name none.
    func urlProtocol(_ protocol: URLProtocol, didFailWithError error: any Error)

    /// The delegate's answer is passed to the challenge's sender.
    func urlProtocol(_ protocol: URLProtocol, didReceive challenge: URLAuthenticationChallenge)

    /// The protocol no longer needs an answer to the challenge.
    func urlProtocol(_ protocol: URLProtocol, didCancel challenge: URLAuthenticationChallenge)
}
