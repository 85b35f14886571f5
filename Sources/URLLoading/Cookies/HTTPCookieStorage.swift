import Foundation
import HTTPSemantics
import Synchronization
import WireText

/// A thread-safe store of cookies by the rules of RFC 6265bis.
///
/// It holds at most 3300 cookies, 180 of one domain, and evicts in the order of RFC 6265bis §5.7. Cookies of servers expire
/// after 400 days at most. A storage with a file writes persistent cookies immediately, but at most once per second. If
/// several programs share a file, the last to write wins.
open class HTTPCookieStorage: NSObject, @unchecked Sendable {  // Not final; its lock guards what changes.
    private struct State: Sendable {
        var store: CookieStore
        var policy = HTTPCookie.AcceptPolicy.always
    }

    private static let sharedStorage = HTTPCookieStorage(
        file: StorageLocation.cookies.appendingPathComponent(".cookies.shared"))
    private static let groupStorages = Mutex<[String: HTTPCookieStorage]>([:])

    /// The `mainDocumentURL` of the task that `cookies(for:)` is called for; `nil` if the program calls it.
    @TaskLocal private static var documentOfTask: URL?

    private let state: Mutex<State>
    private let fileWriter: CookieFileWriter?
    /// Asks a custom storage, whose methods may block, for loads.
    let queue = DispatchQueue(label: "URLLoading.cookies")

    /// An empty storage without a file.
    public override init() {
        self.state = Mutex(State(store: CookieStore([], now: Date())))
        self.fileWriter = nil
        super.init()
    }

    /// - Parameter file: stores persistent cookies; created when there is something to write.
    package init(file: URL) {
        let file = CookieFile(url: file)
        self.state = Mutex(State(store: CookieStore(file.read(), now: Date())))
        self.fileWriter = CookieFileWriter(file: file)
        super.init()
    }

    /// The storage of this program, in the file `.cookies.shared` of its data directory.
    open class var shared: HTTPCookieStorage { self.sharedStorage }

    /// The storage for an identifier; the same object for the same identifier.
    open class func sharedCookieStorage(forGroupContainerIdentifier identifier: String) -> HTTPCookieStorage {
        self.groupStorages.withLock { storages in
            if let storage = storages[identifier] { return storage }
            // The identifier must not point outside of the directory.
            let name = identifier.split(separator: "/", omittingEmptySubsequences: false).joined(separator: "_")
            let storage = HTTPCookieStorage(file: StorageLocation.cookies.appendingPathComponent(".cookies.\(name)"))
            storages[identifier] = storage
            return storage
        }
    }

    /// All cookies that have not expired, unordered. Never `nil`.
    open var cookies: [HTTPCookie]? { self.state.withLock { $0.store.cookies(at: Date()) } }

    /// Which cookies of responses are stored. Default: all.
    open var cookieAcceptPolicy: HTTPCookie.AcceptPolicy {
        get { self.state.withLock { $0.policy } }
        set {
            let changed = self.state.withLock { state in
                defer { state.policy = newValue }
                return state.policy != newValue
            }
            if changed { self.post(.NSHTTPCookieManagerAcceptPolicyChanged) }
        }
    }

    /// Stores a cookie, replacing one with the same name, domain and path, unless the policy is `never`. An expired cookie
    /// removes the other.
    open func setCookie(_ cookie: HTTPCookie) {
        self.change { $0.policy != .never && $0.store.insert(cookie, now: Date()) }
    }

    open func deleteCookie(_ cookie: HTTPCookie) {
        self.change { $0.store.remove(cookie) }
    }

    /// Removes the cookies stored at `date` or later.
    open func removeCookies(since date: Date) {
        self.change { $0.store.remove(since: date) }
    }

    /// The cookies for a same-site request of `URL`, in the order of the Cookie field.
    open func cookies(for URL: URL) -> [HTTPCookie]? {
        self.cookies(for: URL, mainDocumentURL: Self.documentOfTask)
    }

    /// The cookies for a request made by a document.
    /// - Parameter isNavigation: whether the request is a top-level navigation with a safe method.
    package func cookies(for url: URL, mainDocumentURL: URL?, isNavigation: Bool = false) -> [HTTPCookie] {
        guard self.state.withLock({ !$0.store.isEmpty }),
            let request = CookieRequest(url, mainDocumentURL: mainDocumentURL, isNavigation: isNavigation)
        else { return [] }
        let port = Origin(url)?.port ?? 0
        return self.state.withLock { $0.store.take(for: request, port: port, now: Date()) }
    }

    /// Stores the cookies of a response from `URL` that the policy and the rules allow; none if `URL` is `nil`.
    open func setCookies(_ cookies: [HTTPCookie], for URL: URL?, mainDocumentURL: URL?) {
        self.setCookies(cookies, for: URL, mainDocumentURL: mainDocumentURL, policy: self.cookieAcceptPolicy)
    }

    /// - Parameter policy: replaces the storage's own; from the session's configuration.
    package func setCookies(
        _ cookies: [HTTPCookie], for url: URL?, mainDocumentURL: URL?, policy: HTTPCookie.AcceptPolicy
    ) {
        guard policy != .never, let url, let request = CookieRequest(url, mainDocumentURL: mainDocumentURL),
            policy == .always || request.isSameSite
        else { return }
        self.change { state in
            let now = Date()
            return cookies.reduce(false) { state.store.store($1, from: request, now: now) || $0 }
        }
    }

    /// Stores the cookies of a task's response, like `setCookies(_:for:mainDocumentURL:)`.
    open func storeCookies(_ cookies: [HTTPCookie], for task: URLSessionTask) {
        let request = task.currentRequest
        self.setCookies(cookies, for: request?.url, mainDocumentURL: request?.mainDocumentURL)
    }

    /// - Parameter completionHandler: receives what `cookies(for:)` returns for the task's current request, without cookies
    ///   that its `mainDocumentURL` excludes; called synchronously.
    open func getCookiesFor(
        _ task: URLSessionTask, completionHandler: @escaping @Sendable ([HTTPCookie]?) -> Void
    ) {
        let request = task.currentRequest
        // By the method that a subclass may override.
        let cookies = Self.$documentOfTask.withValue(request?.mainDocumentURL) {
            request?.url.flatMap { self.cookies(for: $0) }
        }
        completionHandler(cookies)
    }

    /// All cookies, sorted by the descriptors.
    open func sortedCookies(using sortOrder: [NSSortDescriptor]) -> [HTTPCookie] {
        (self.cookies ?? []).sorted { one, other in
            for descriptor in sortOrder {
                let result = descriptor.compare(one, to: other)
                if result != .orderedSame { return result == .orderedAscending }
            }
            return false
        }
    }

    /// Writes pending changes to the file.
    package func flush() { self.fileWriter?.flush { self.persistentCookies } }

    open override var description: String { "<NSHTTPCookieStorage cookies count:\(self.cookies?.count ?? 0)>" }

    private var persistentCookies: [HTTPCookie] { (self.cookies ?? []).filter { !$0.isSessionOnly } }

    private func change(_ body: (inout State) -> Bool) {
        guard self.state.withLock({ body(&$0) }) else { return }
        self.fileWriter?.changed { self.persistentCookies }
        self.post(.NSHTTPCookieManagerCookiesChanged)
    }

    private func post(_ name: Notification.Name) {
        NotificationCenter.default.post(name: name, object: self)
    }
}

extension HTTPCookieStorage {
    /// Like `getCookiesFor(_:completionHandler:)`.
    public func cookies(for task: URLSessionTask) async -> [HTTPCookie]? {
        await withCheckedContinuation { continuation in
            self.getCookiesFor(task) { continuation.resume(returning: $0) }
        }
    }
}

extension Notification.Name {
    /// The cookies of a storage, the notification's object, have changed.
    public static let NSHTTPCookieManagerCookiesChanged = Notification.Name(
        "NSHTTPCookieManagerCookiesChangedNotification")
    /// The accept policy of a storage, the notification's object, has changed.
    public static let NSHTTPCookieManagerAcceptPolicyChanged = Notification.Name(
        "NSHTTPCookieManagerAcceptPolicyChangedNotification")
}

extension CookieRequest {
    /// - Returns: `nil` for a URL without a host.
    init?(_ url: URL, mainDocumentURL: URL?, isNavigation: Bool = false) {
        guard let host = url.host(percentEncoded: false), !host.isEmpty else { return nil }
        let document = mainDocumentURL?.host(percentEncoded: false)
        self.init(
            host: host, path: url.path(percentEncoded: true),
            isSecure: ["https", "wss"].contains(url.scheme?.loweredASCII ?? ""),
            isSameSite: document.map { CookieDomain.areSameSite(host, $0, suffixes: .system) } ?? true,
            isSafeNavigation: isNavigation)
    }
}
