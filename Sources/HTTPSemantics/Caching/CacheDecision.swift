import HTTPTypes

/// How a request is to be answered.
package enum CacheDecision: Equatable, Sendable {
    /// From the cache, without asking.
    case useStored
    /// From the cache if the server says so: these fields are put on the request.
    case validate(HTTPFields)
    /// From the server; these fields are put on the request, most often none.
    case load(HTTPFields)
    /// Not at all: it was to come from the cache alone, and is not there.
    case unavailable

    /// - Parameters:
    ///   - entry: what is kept for the request's target; `nil` for nothing.
    ///   - fields: of the request, as they would be sent without a cache.
    package static func decide(
        _ policy: CachePolicy, method: HTTPRequest.Method, fields: HTTPFields, entry: CacheEntry?, now: HTTPDate
    ) -> Self {
        let usable = entry.flatMap { self.answers($0, method: method, fields: fields) ? $0 : nil }
        switch policy {
        case .reload:
            return .load([:])
        case .reloadEverywhere:
            return .load([.cacheControl: "no-cache", .pragma: "no-cache"])
        case .storedElseLoad:
            return usable == nil ? .load([:]) : .useStored
        case .storedOnly:
            return usable == nil ? .unavailable : .useStored
        case .revalidate:
            return usable.map(Self.asking) ?? .load([:])
        case .protocolDecides:
            return self.byProtocol(fields: fields, entry: usable, now: now)
        }
    }

    private static func byProtocol(fields: HTTPFields, entry: CacheEntry?, now: HTTPDate) -> Self {
        let request = CacheControl(fields)
        guard let entry, !request.noStore else { return request.onlyIfCached ? .unavailable : .load([:]) }
        let needsAsking = request.noCache || entry.control.noCache
        if !needsAsking, self.isFreshEnough(entry, for: request, now: now) { return .useStored }
        return request.onlyIfCached ? .unavailable : self.asking(entry)
    }

    /// Whether `entry` is an answer to such a request at all.
    private static func answers(_ entry: CacheEntry, method: HTTPRequest.Method, fields: HTTPFields) -> Bool {
        guard method == .get || method == .head, entry.selection.matches(fields) else { return false }
        // Who sets conditions or asks for a part wants the server's own answer.
        let own: [HTTPField.Name] = [.range, .ifMatch, .ifNoneMatch, .ifModifiedSince, .ifUnmodifiedSince, .ifRange]
        return !own.contains(where: fields.contains)
    }

    /// RFC 9111 §4.2 and §5.2.1: the request may ask for more than freshness, or for less.
    private static func isFreshEnough(_ entry: CacheEntry, for request: CacheControl, now: HTTPDate) -> Bool {
        let age = entry.age(at: now)
        if let maxAge = request.maxAge, age > maxAge { return false }
        let staleness = age - entry.lifetime
        if let minFresh = request.minFresh { return -staleness >= minFresh && staleness < 0 }
        if staleness < 0 { return true }
        guard !entry.control.mustRevalidate else { return false }
        switch request.maxStale {
        case .any: return true
        case .upTo(let seconds): return staleness <= seconds
        case nil: return false
        }
    }

    /// A conditional request, or a plain one where the entry has nothing to ask by (RFC 9111 §4.3.1).
    private static func asking(_ entry: CacheEntry) -> Self {
        var fields = HTTPFields()
        if let tag = entry.entityTag { fields[.ifNoneMatch] = tag.fieldValue }
        if let modified = entry.lastModified { fields[.ifModifiedSince] = modified }
        return fields.isEmpty ? .load([:]) : .validate(fields)
    }
}
