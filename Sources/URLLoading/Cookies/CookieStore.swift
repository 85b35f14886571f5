import Dispatch
import Foundation
import HTTPSemantics
import Synchronization

/// The cookies of a storage: the jar that judges, and beside it the objects that were handed in.
struct CookieStore: Sendable {
    private struct Entry: Sendable {
        let cookie: HTTPCookie
        let stored: Date
    }

    private var jar: CookieJar
    private var entries: [Cookie.Identity: Entry] = [:]

    init(_ cookies: [HTTPCookie], now: Date) {
        self.jar = CookieJar()
        for cookie in cookies { _ = self.insert(cookie, stored: cookie.facts.created, now: now) }
    }

    var isEmpty: Bool { self.jar.count == 0 }

    /// Those that have not ended.
    func cookies(at now: Date) -> [HTTPCookie] {
        let moment = HTTPDate(now)
        return self.jar.cookies.filter { !$0.isExpired(at: moment) }.map { self.object($0) }
    }

    /// Those for a request, in the order in which they are written; they count as used.
    mutating func take(for request: CookieRequest, now: Date) -> [HTTPCookie] {
        self.jar.retrieve(for: request, now: HTTPDate(now)).map { self.object($0) }
    }

    /// Keeps what the program itself made.
    /// - Returns: whether anything changed.
    mutating func insert(_ cookie: HTTPCookie, now: Date) -> Bool { self.insert(cookie, stored: now, now: now) }

    private mutating func insert(_ cookie: HTTPCookie, stored: Date, now: Date) -> Bool {
        let outcome = self.jar.insert(cookie.facts.kept, now: HTTPDate(now))
        return self.note(outcome, of: cookie, stored: stored)
    }

    /// Keeps what came with an answer, if it may be kept.
    /// - Returns: whether anything changed.
    mutating func store(_ cookie: HTTPCookie, from request: CookieRequest, now: Date) -> Bool {
        if cookie.facts.isHostOnly, CookieDomain.canonical(cookie.facts.domain) != request.host { return false }
        let outcome = self.jar.store(cookie.facts.sent, from: request, now: HTTPDate(now))
        return self.note(outcome, of: cookie, stored: now)
    }

    /// - Returns: whether there was one.
    mutating func remove(_ cookie: HTTPCookie) -> Bool {
        let identity = cookie.facts.identity
        self.entries[identity] = nil
        return !self.jar.removeAll { $0.identity == identity }.isEmpty
    }

    /// Takes out those that were stored at `date` or later.
    mutating func remove(since date: Date) -> Bool {
        let entries = self.entries
        let removed = self.jar.removeAll { (entries[$0.identity]?.stored ?? $0.creation.date) >= date }
        for cookie in removed { self.entries[cookie.identity] = nil }
        return !removed.isEmpty
    }

    private mutating func note(_ outcome: CookieJar.StoreOutcome, of cookie: HTTPCookie, stored: Date) -> Bool {
        switch outcome {
        case .refused: return false
        case .removed(let wasThere):
            self.entries[cookie.facts.identity] = nil
            return wasThere
        case .stored, .replaced:
            self.entries[cookie.facts.identity] = Entry(cookie: cookie, stored: stored)
            self.forgetEvicted()
            return true
        }
    }

    /// The jar makes room by rules of its own.
    private mutating func forgetEvicted() {
        guard self.entries.count > self.jar.count else { return }
        let kept = Set(self.jar.cookies.map(\.identity))
        self.entries = self.entries.filter { kept.contains($0.key) }
    }

    private func object(_ cookie: Cookie) -> HTTPCookie {
        if let object = self.entries[cookie.identity]?.cookie { return object }
        return HTTPCookie(
            CookieAttributes(
                name: cookie.name, value: cookie.value, domain: (cookie.isHostOnly ? "" : ".") + cookie.domain,
                path: cookie.path, expires: cookie.expires?.date, isSecure: cookie.isSecure,
                isHTTPOnly: cookie.isHTTPOnly, sameSite: cookie.sameSite, created: cookie.creation.date))
    }
}

/// The file in which cookies outlive the process: a property list, for its owner's eyes only.
struct CookieFile: Sendable {
    let url: URL

    /// The cookies of the file. One that cannot be read, or none at all, holds none.
    func read() -> [HTTPCookie] {
        guard let data = try? Data(contentsOf: self.url),
            let list = try? PropertyListSerialization.propertyList(from: data, format: nil) as? [[String: Any]]
        else { return [] }
        return list.compactMap { entry in
            let pairs = entry.map { (HTTPCookiePropertyKey($0.key), $0.value) }
            return HTTPCookie(properties: Dictionary(pairs) { first, _ in first })
        }
    }

    /// Writes the whole file anew, in one step: whoever reads it meanwhile, and whoever dies meanwhile, sees the old one.
    /// - Returns: whether it could be written.
    @discardableResult
    func write(_ cookies: [HTTPCookie]) -> Bool {
        let list = cookies.map { cookie in
            let pairs = cookie.facts.properties.map {
                ($0.key.rawValue, ($0.value as? URL)?.absoluteString ?? $0.value)
            }
            return Dictionary(pairs) { first, _ in first }
        }
        guard let data = try? PropertyListSerialization.data(fromPropertyList: list, format: .binary, options: 0) else {
            return false
        }
        return PrivateFile.write(data, to: self.url)
    }
}

/// Brings a storage's cookies to its file: the first change at once, those that follow within a second together.
final class CookieJournal: Sendable {
    private struct State {
        var isChanged = false
        var isScheduled = false
        var lastWrite: ContinuousClock.Instant?
    }

    /// What the storage holds when it is asked.
    typealias Snapshot = @Sendable () -> [HTTPCookie]

    private static let pause = Duration.seconds(1)

    private let file: CookieFile
    private let state = Mutex(State())
    /// Held from the asking to the end of the writing, so that nothing older takes the place of what is newer.
    private let writing = Mutex(())
    private let queue = DispatchQueue(label: "URLLoading.cookies", qos: .utility)

    init(file: CookieFile) { self.file = file }

    /// Tells of a change after it was made, outside of the storage's lock.
    func changed(_ snapshot: @escaping Snapshot) {
        let isDue = self.state.withLock { state in
            state.isChanged = true
            guard let last = state.lastWrite, .now - last < Self.pause else { return true }
            if !state.isScheduled {
                state.isScheduled = true
                self.queue.asyncAfter(deadline: .now() + 1) { self.flush(snapshot) }
            }
            return false
        }
        if isDue { self.flush(snapshot) }
    }

    /// Writes what is not written yet.
    func flush(_ snapshot: Snapshot) {
        self.writing.withLock { _ in
            let isChanged = self.state.withLock { state in
                defer { state.isChanged = false }
                state.isScheduled = false
                if state.isChanged { state.lastWrite = .now }
                return state.isChanged
            }
            if isChanged { self.file.write(snapshot()) }
        }
    }
}
