/// The store of cookies of RFC 6265bis §5.7 and §5.8: bounded, without a clock of its own, a value.
package struct CookieJar: Sendable {
    /// What became of a cookie that was to be kept.
    package enum StoreOutcome: Equatable, Sendable {
        case stored
        /// It took the place of an older one.
        case replaced
        /// It had ended already: that is how servers take a cookie back. Whether there was one to remove.
        case removed(Bool)
        case refused(CookieRefusal)
    }

    package let limits: CookieLimits
    package let suffixes: PublicSuffixRule
    package private(set) var count = 0
    /// By domain; within one, the earlier stored comes first.
    private(set) var shelves: [String: [Cookie]] = [:]

    /// - Parameters:
    ///   - cookies: those kept from an earlier run; only the limits are applied to them.
    package init(
        _ cookies: [Cookie] = [], limits: CookieLimits = CookieLimits(), suffixes: PublicSuffixRule = .singleLabels
    ) {
        self.limits = limits
        self.suffixes = suffixes
        for cookie in cookies { _ = self.insert(cookie, now: cookie.lastAccess) }
    }

    /// All cookies, the ended ones included, in no order that means anything.
    package var cookies: [Cookie] { self.shelves.values.flatMap { $0 } }

    /// Judges a cookie that a server sent, and keeps it if it may be kept.
    package mutating func store(_ set: SetCookie, from request: CookieRequest, now: HTTPDate) -> StoreOutcome {
        do throws(CookieRefusal) {
            let cookie = try self.judged(set, from: request, now: now)
            return self.insert(cookie, now: now)
        } catch {
            return .refused(error)
        }
    }

    /// Keeps a cookie that the program itself made: it may be for any domain, and live as long as it likes.
    package mutating func insert(_ cookie: Cookie, now: HTTPDate) -> StoreOutcome {
        var cookie = cookie
        let old = self.shelves[cookie.domain]?.firstIndex { cookie.identity == $0.identity }
        if cookie.isExpired(at: now) {
            guard let old else { return .removed(false) }
            self.remove(at: old, of: cookie.domain)
            return .removed(true)
        }
        if let old, let before = self.shelves[cookie.domain]?[old] {
            cookie.creation = before.creation
            self.shelves[cookie.domain]?[old] = cookie
            return .replaced
        }
        self.shelves[cookie.domain, default: []].append(cookie)
        self.count += 1
        self.makeRoom(in: cookie.domain, now: now)
        return .stored
    }

    /// The cookies that go along with a request, in the order in which they are written: longer paths first, then the
    /// earlier made. They count as used now.
    package mutating func take(for request: CookieRequest, now: HTTPDate) -> [Cookie] {
        var found: [Cookie] = []
        guard self.count > 0 else { return found }
        for domain in Self.domains(over: request.host) {
            guard let shelf = self.shelves[domain] else { continue }
            for (index, cookie) in shelf.enumerated() where request.takes(cookie) && !cookie.isExpired(at: now) {
                found.append(cookie)
                if cookie.lastAccess < now { self.shelves[domain]?[index].lastAccess = now }
            }
        }
        return Self.ordered(found)
    }

    /// The same without counting as use.
    package func peek(for request: CookieRequest, now: HTTPDate) -> [Cookie] {
        let found = Self.domains(over: request.host).flatMap { self.shelves[$0] ?? [] }
        return Self.ordered(found.filter { request.takes($0) && !$0.isExpired(at: now) })
    }

    /// Takes out all cookies that `isUnwanted`.
    /// - Returns: those taken out.
    package mutating func removeAll(where isUnwanted: (Cookie) -> Bool) -> [Cookie] {
        var removed: [Cookie] = []
        for (domain, shelf) in self.shelves {
            let unwanted = shelf.filter(isUnwanted)
            guard !unwanted.isEmpty else { continue }
            removed += unwanted
            let kept = shelf.filter { !isUnwanted($0) }
            self.shelves[domain] = kept.isEmpty ? nil : kept
        }
        self.count -= removed.count
        return removed
    }
}

extension CookieJar {
    /// Room is made of what has ended, then of what is not secure, then of the rest, and of equals the one goes that
    /// has not been used for longest.
    private mutating func makeRoom(in domain: String, now: HTTPDate) {
        let crowded = self.shelves[domain]?.count ?? 0 > self.limits.perDomain
        guard crowded || self.count > self.limits.total else { return }
        _ = self.removeAll { $0.isExpired(at: now) }
        while let shelf = self.shelves[domain], shelf.count > self.limits.perDomain {
            guard let index = Self.leastWanted(shelf) else { break }
            self.remove(at: index, of: domain)
        }
        while self.count > self.limits.total {
            let oldest = self.shelves.min { Self.oldestUse($0.value) < Self.oldestUse($1.value) }
            guard let oldest,
                let index = oldest.value.indices.min(by: { oldest.value[$0].isUsedBefore(oldest.value[$1]) })
            else { break }
            self.remove(at: index, of: oldest.key)
        }
    }

    private mutating func remove(at index: Int, of domain: String) {
        self.shelves[domain]?.remove(at: index)
        self.count -= 1
        if self.shelves[domain]?.isEmpty == true { self.shelves[domain] = nil }
    }

    private static func leastWanted(_ shelf: [Cookie]) -> Int? {
        let open = shelf.indices.filter { !shelf[$0].isSecure }
        return (open.isEmpty ? Array(shelf.indices) : open).min { shelf[$0].isUsedBefore(shelf[$1]) }
    }

    private static func oldestUse(_ shelf: [Cookie]) -> HTTPDate {
        shelf.reduce(.latest) { min($0, $1.lastAccess) }
    }

    private static func ordered(_ cookies: [Cookie]) -> [Cookie] {
        // The sort is stable, so that among equals the earlier stored stays first.
        cookies.sorted {
            ($1.path.utf8.count, $0.creation) < ($0.path.utf8.count, $1.creation)
        }
    }

    /// The host and every domain that it lies below.
    private static func domains(over host: String) -> [String] {
        if CookieDomain.isAddress(host) { return [host] }
        var domains = [host]
        var rest = host.utf8[...]
        // A name has at most 127 labels (RFC 1035 §2.3.4).
        while let dot = rest.firstIndex(of: UInt8(ascii: ".")), domains.count < 128 {
            rest = rest[rest.index(after: dot)...]
            domains.append(String(Substring(rest)))
        }
        return domains
    }
}

extension Cookie {
    fileprivate func isUsedBefore(_ other: Self) -> Bool { self.lastAccess < other.lastAccess }
}
