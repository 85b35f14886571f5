import Dispatch
import Foundation
import HTTPSemantics
import PublicSuffixList
import StreamTransport
import Synchronization

/// The cookies of a storage: a `CookieJar`, which applies the rules, and the `HTTPCookie` objects that were stored.
struct CookieStore: Sendable {
    private struct Entry: Sendable {
        let cookie: HTTPCookie
        let stored: Date
    }

    private var jar: CookieJar
    private var entries: [Cookie.Identity: Entry] = [:]

    init(_ cookies: [HTTPCookie], now: Date) {
        self.jar = CookieJar(suffixes: .system)
        for cookie in cookies { _ = self.insert(cookie, stored: cookie.attributes.created, now: now) }
    }

    var isEmpty: Bool { self.jar.count == 0 }

    /// All cookies that have not expired.
    func cookies(at now: Date) -> [HTTPCookie] {
        let moment = HTTPDate(now)
        return self.jar.cookies.filter { !$0.isExpired(at: moment) }.map { self.publicCookie($0) }
    }

    /// The cookies for a request to a port, in the order of the Cookie field; updates their last access.
    mutating func take(for request: CookieRequest, port: Int, now: Date) -> [HTTPCookie] {
        self.jar.retrieve(for: request, now: HTTPDate(now)).map { self.publicCookie($0) }
            .filter { $0.attributes.ports?.contains(port) ?? true }
    }

    /// Stores a cookie made by the program.
    /// - Returns: whether anything changed.
    mutating func insert(_ cookie: HTTPCookie, now: Date) -> Bool { self.insert(cookie, stored: now, now: now) }

    private mutating func insert(_ cookie: HTTPCookie, stored: Date, now: Date) -> Bool {
        let outcome = self.jar.insert(cookie.attributes.storedCookie, now: HTTPDate(now))
        return self.apply(outcome, of: cookie, stored: stored)
    }

    /// Stores a cookie of a response if the rules allow it.
    /// - Returns: whether anything changed.
    mutating func store(_ cookie: HTTPCookie, from request: CookieRequest, now: Date) -> Bool {
        if cookie.attributes.isHostOnly, CookieDomain.canonical(cookie.attributes.domain) != request.host {
            return false
        }
        let outcome = self.jar.store(cookie.attributes.receivedCookie, from: request, now: HTTPDate(now))
        return self.apply(outcome, of: cookie, stored: now)
    }

    /// - Returns: whether the cookie was stored.
    mutating func remove(_ cookie: HTTPCookie) -> Bool {
        let identity = cookie.attributes.identity
        self.entries[identity] = nil
        return !self.jar.removeAll { $0.identity == identity }.isEmpty
    }

    /// Removes the cookies stored at `date` or later.
    mutating func remove(since date: Date) -> Bool {
        let entries = self.entries
        let removed = self.jar.removeAll { (entries[$0.identity]?.stored ?? $0.creation.date) >= date }
        for cookie in removed { self.entries[cookie.identity] = nil }
        return !removed.isEmpty
    }

    private mutating func apply(_ outcome: CookieJar.StoreOutcome, of cookie: HTTPCookie, stored: Date) -> Bool {
        switch outcome {
        case .refused: return false
        case .removed(let wasThere):
            self.entries[cookie.attributes.identity] = nil
            return wasThere
        case .stored, .replaced:
            self.entries[cookie.attributes.identity] = Entry(cookie: cookie, stored: stored)
            self.forgetEvicted()
            return true
        }
    }

    /// Removes the objects of cookies that the jar has evicted.
    private mutating func forgetEvicted() {
        guard self.entries.count > self.jar.count else { return }
        let kept = Set(self.jar.cookies.map(\.identity))
        self.entries = self.entries.filter { kept.contains($0.key) }
    }

    private func publicCookie(_ cookie: Cookie) -> HTTPCookie {
        if let object = self.entries[cookie.identity]?.cookie { return object }
        return HTTPCookie(
            CookieAttributes(
                name: cookie.name, value: cookie.value, domain: (cookie.isHostOnly ? "" : ".") + cookie.domain,
                path: cookie.path, expires: cookie.expires?.date, isSecure: cookie.isSecure,
                isHTTPOnly: cookie.isHTTPOnly, sameSite: cookie.sameSite, created: cookie.creation.date))
    }
}

/// The file of a cookie storage: a property list with mode 0600.
struct CookieFile: Sendable {
    let url: URL

    /// The cookies of the file; empty if it is missing or unreadable.
    func read() -> [HTTPCookie] {
        guard let data = try? Data(contentsOf: self.url),
            let list = try? PropertyListSerialization.propertyList(from: data, format: nil) as? [[String: Any]]
        else { return [] }
        return list.compactMap { entry in
            let pairs = entry.map { (HTTPCookiePropertyKey($0.key), $0.value) }
            return HTTPCookie(properties: Dictionary(pairs) { first, _ in first })
        }
    }

    /// Replaces the file atomically.
    func write(_ cookies: [HTTPCookie]) {
        let list = cookies.map { cookie in
            let pairs = cookie.attributes.properties.map {
                ($0.key.rawValue, ($0.value as? URL)?.absoluteString ?? $0.value)
            }
            return Dictionary(pairs) { first, _ in first }
        }
        guard let data = try? PropertyListSerialization.data(fromPropertyList: list, format: .binary, options: 0) else {
            return
        }
        _ = PrivateFile.write(data, to: self.url)
    }
}

/// Writes a storage's cookies to its file: the first change immediately, later changes once per second.
final class CookieFileWriter: Sendable {
    private struct State {
        var hasChanges = false
        var isScheduled = false
        var lastWrite: ContinuousInstant?
    }

    /// Returns the cookies to be written.
    typealias Snapshot = @Sendable () -> [HTTPCookie]

    private static let interval = Duration.seconds(1)

    private let file: CookieFile
    private let state = Mutex(State())
    /// Held while the snapshot is taken and written, so that an older snapshot never replaces a newer one.
    private let writing = Mutex(())
    private let queue = DispatchQueue(label: "URLLoading.cookies", qos: .utility)

    init(file: CookieFile) { self.file = file }

    /// Call after a change, without holding the storage's lock.
    func changed(_ snapshot: @escaping Snapshot) {
        let isDue = self.state.withLock { state in
            state.hasChanges = true
            guard let last = state.lastWrite, .now - last < Self.interval else { return true }
            if !state.isScheduled {
                state.isScheduled = true
                self.queue.asyncAfter(deadline: .now() + 1) { self.flush(snapshot) }
            }
            return false
        }
        if isDue { self.flush(snapshot) }
    }

    /// Writes pending changes.
    func flush(_ snapshot: Snapshot) {
        self.writing.withLock { _ in
            let isChanged = self.state.withLock { state in
                defer { state.hasChanges = false }
                state.isScheduled = false
                if state.hasChanges { state.lastWrite = .now }
                return state.hasChanges
            }
            if isChanged { self.file.write(snapshot()) }
        }
    }
}

extension PublicSuffixRule {
    /// The system's list if libpsl is installed; otherwise domains of one label.
    static let system = PublicSuffixes.installed.map { list in PublicSuffixRule { list.contains($0) } } ?? .singleLabels
}
