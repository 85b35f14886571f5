import Foundation
import HTTPSemantics
import Synchronization

/// A store of cookies by the rules of RFC 6265bis, for any number of threads.
///
/// It holds at most 3300 cookies, 180 of one domain; what is too much makes room by the order of RFC 6265bis §5.7.
/// Cookies of servers live 400 days at most. A storage with a file writes there what outlives the session: at once, or
/// a second later where it did so less than a second ago. Of several programs with one file the last to write wins.
open class HTTPCookieStorage: NSObject, @unchecked Sendable {
    private struct State: Sendable {
        var shelf: CookieStore
        var policy = HTTPCookie.AcceptPolicy.always
    }

    private static let sharedStorage = HTTPCookieStorage(
        file: StorageLocation.cookies.appendingPathComponent(".cookies.shared"))
    private static let groupStorages = Mutex<[String: HTTPCookieStorage]>([:])

    private let state: Mutex<State>
    private let journal: CookieJournal?

    /// In memory alone, and empty.
    public override init() {
        self.state = Mutex(State(shelf: CookieStore([], now: Date())))
        self.journal = nil
        super.init()
    }

    /// - Parameter file: where cookies outlive the process; is made when something is to be written.
    package init(file: URL) {
        let file = CookieFile(url: file)
        self.state = Mutex(State(shelf: CookieStore(file.read(), now: Date())))
        self.journal = CookieJournal(file: file)
        super.init()
    }

    /// The storage of this program, in the file `.cookies.shared` of its data folder.
    open class var shared: HTTPCookieStorage { self.sharedStorage }

    /// A storage of its own for every identifier, always the same for the same one.
    open class func sharedCookieStorage(forGroupContainerIdentifier identifier: String) -> HTTPCookieStorage {
        self.groupStorages.withLock { storages in
            if let storage = storages[identifier] { return storage }
            // An identifier names a file of the folder, and nothing outside of it.
            let name = identifier.split(separator: "/", omittingEmptySubsequences: false).joined(separator: "_")
            let storage = HTTPCookieStorage(file: StorageLocation.cookies.appendingPathComponent(".cookies.\(name)"))
            storages[identifier] = storage
            return storage
        }
    }

    /// All that have not ended, in no order that means anything. Never `nil`.
    open var cookies: [HTTPCookie]? { self.state.withLock { $0.shelf.cookies(at: Date()) } }

    /// Whose cookies are taken from answers; everybody's by default.
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

    /// Keeps a cookie in place of one with the same name, domain and path, unless the policy is `never`. One that has
    /// ended takes the other away.
    open func setCookie(_ cookie: HTTPCookie) {
        self.change { $0.policy != .never && $0.shelf.insert(cookie, now: Date()) }
    }

    open func deleteCookie(_ cookie: HTTPCookie) {
        self.change { $0.shelf.remove(cookie) }
    }

    /// Takes out the cookies that were stored at `date` or later.
    open func removeCookies(since date: Date) {
        self.change { $0.shelf.remove(since: date) }
    }

    /// Those that go along with a request for `URL` that no other site caused, in the order in which they are written.
    open func cookies(for URL: URL) -> [HTTPCookie]? { self.cookies(for: URL, mainDocumentURL: nil) }

    /// Those that go along with a request that a document caused.
    /// - Parameter isNavigation: whether the request brings the user to the site by a safe method.
    package func cookies(for url: URL, mainDocumentURL: URL?, isNavigation: Bool = false) -> [HTTPCookie] {
        guard self.state.withLock({ !$0.shelf.isEmpty }),
            let request = CookieRequest(url, mainDocumentURL: mainDocumentURL, isNavigation: isNavigation)
        else { return [] }
        return self.state.withLock { $0.shelf.take(for: request, now: Date()) }
    }

    /// Keeps the cookies of an answer from `URL` that the policy and the rules let in. `nil` for `URL` keeps nothing.
    open func setCookies(_ cookies: [HTTPCookie], for URL: URL?, mainDocumentURL: URL?) {
        self.setCookies(cookies, for: URL, mainDocumentURL: mainDocumentURL, policy: self.cookieAcceptPolicy)
    }

    /// The same by another policy than the storage's own: a session's configuration goes before it.
    package func setCookies(
        _ cookies: [HTTPCookie], for url: URL?, mainDocumentURL: URL?, policy: HTTPCookie.AcceptPolicy
    ) {
        guard policy != .never, let url, let request = CookieRequest(url, mainDocumentURL: mainDocumentURL),
            policy == .always || request.isSameSite
        else { return }
        // Who takes the cookies of all takes those too that do not say whether they are for other sites.
        let own = CookieRequest(host: request.host, path: request.path, isSecure: request.isSecure)
        self.change { state in
            let now = Date()
            return cookies.reduce(false) { changed, cookie in
                let source = cookie.facts.sameSite == .unspecified ? own : request
                return state.shelf.store(cookie, from: source, now: now) || changed
            }
        }
    }

    /// Keeps the cookies of the answer that a task was given, as `setCookies(_:for:mainDocumentURL:)` does.
    open func storeCookies(_ cookies: [HTTPCookie], for task: URLSessionTask) {
        let request = task.currentRequest
        self.setCookies(cookies, for: request?.url, mainDocumentURL: request?.mainDocumentURL)
    }

    /// - Parameter completionHandler: takes what goes along with the task's current request; at once.
    open func getCookiesFor(
        _ task: URLSessionTask, completionHandler: @escaping @Sendable ([HTTPCookie]?) -> Void
    ) {
        let request = task.currentRequest
        completionHandler(request?.url.map { self.cookies(for: $0, mainDocumentURL: request?.mainDocumentURL) })
    }

    /// All cookies in the order of the descriptors, the first of which counts most.
    open func sortedCookies(using sortOrder: [NSSortDescriptor]) -> [HTTPCookie] {
        (self.cookies ?? []).sorted { one, other in
            for descriptor in sortOrder {
                let result = descriptor.compare(one, to: other)
                if result != .orderedSame { return result == .orderedAscending }
            }
            return false
        }
    }

    /// Writes to the file what is not there yet.
    package func flush() { self.journal?.flush { self.lasting } }

    open override var description: String { "<NSHTTPCookieStorage cookies count:\(self.cookies?.count ?? 0)>" }

    /// Those that outlive the session.
    private var lasting: [HTTPCookie] { (self.cookies ?? []).filter { !$0.isSessionOnly } }

    private func change(_ body: (inout State) -> Bool) {
        guard self.state.withLock({ body(&$0) }) else { return }
        self.journal?.changed { self.lasting }
        self.post(.NSHTTPCookieManagerCookiesChanged)
    }

    private func post(_ name: Notification.Name) {
        NotificationCenter.default.post(name: name, object: self)
    }
}

extension HTTPCookieStorage {
    /// As `getCookiesFor(_:completionHandler:)`.
    public func cookies(for task: URLSessionTask) async -> [HTTPCookie]? {
        await withCheckedContinuation { continuation in
            self.getCookiesFor(task) { continuation.resume(returning: $0) }
        }
    }
}

extension Notification.Name {
    /// A storage of cookies, the notification's object, has others than before.
    public static let NSHTTPCookieManagerCookiesChanged = Notification.Name(
        "NSHTTPCookieManagerCookiesChangedNotification")
    /// A storage of cookies, the notification's object, has another accept policy than before.
    public static let NSHTTPCookieManagerAcceptPolicyChanged = Notification.Name(
        "NSHTTPCookieManagerAcceptPolicyChangedNotification")
}

extension CookieRequest {
    /// - Returns: `nil` for a URL without a host, which has no cookies.
    init?(_ url: URL, mainDocumentURL: URL?, isNavigation: Bool = false) {
        guard let host = url.host(percentEncoded: false), !host.isEmpty else { return nil }
        let document = mainDocumentURL?.host(percentEncoded: false)
        self.init(
            host: host, path: url.path(percentEncoded: true),
            isSecure: ["https", "wss"].contains(url.scheme?.withLoweredLetters ?? ""),
            isSameSite: document.map { CookieDomain.areSameSite(host, $0, suffixes: .singleLabels) } ?? true,
            isSafeNavigation: isNavigation)
    }
}
