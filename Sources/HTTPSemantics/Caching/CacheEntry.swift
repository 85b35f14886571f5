import HTTPTypes

/// What a cache knows of a stored response, its content aside (RFC 9111 §3).
package struct CacheEntry: Equatable, Sendable {
    package let status: Int
    package let fields: HTTPFields
    /// What the request said in the fields that `Vary` names.
    package let varyKey: VaryKey
    /// When the request went out and when the response came in, by the clock of this machine.
    package let requestTime: HTTPDate
    package let responseTime: HTTPDate

    /// - Parameters:
    ///   - fields: of the response, hop-by-hop ones included: they are left out here.
    ///   - requestFields: as they were sent.
    package init(
        status: Int, fields: HTTPFields, requestFields: HTTPFields, requestTime: HTTPDate, responseTime: HTTPDate
    ) {
        self.init(
            status: status, fields: HopByHop.removed(from: fields),
            varyKey: VaryKey(response: fields, request: requestFields), requestTime: requestTime,
            responseTime: responseTime)
    }

    /// Brings back an entry from where it was written to.
    package init(
        status: Int, fields: HTTPFields, varyKey: VaryKey, requestTime: HTTPDate, responseTime: HTTPDate
    ) {
        self.status = status
        self.fields = fields
        self.control = CacheControl(fields)
        self.varyKey = varyKey
        self.requestTime = requestTime
        self.responseTime = responseTime
    }

    package let control: CacheControl

    package var entityTag: EntityTag? { self.fields[values: .eTag].first.flatMap { EntityTag($0) } }

    /// As the server wrote it, which is how it must be sent back; `nil` where it is no date.
    package var lastModified: String? {
        let value = self.fields[values: .lastModified].first
        return value.flatMap { HTTPDate($0, now: self.responseTime) } == nil ? nil : value
    }

    /// When the response was made, or else when it came.
    var date: HTTPDate {
        self.fields[values: .date].first.flatMap { HTTPDate($0, now: self.responseTime) } ?? self.responseTime
    }
}

extension CacheEntry {
    /// A guessed lifetime is never longer than this many seconds: a week.
    package static let heuristicLifetimeLimit: Int64 = 7 * 86_400

    /// For how many seconds from its making the response is fresh, in a private cache (RFC 9111 §4.2.1).
    package var lifetime: Int64 {
        if let maxAge = self.control.maxAge { return maxAge }
        if let expires = self.fields[values: .expires].first {
            // A date that cannot be understood, "0" above all, has passed already (§5.3).
            guard let date = HTTPDate(expires, now: self.responseTime) else { return 0 }
            return max(0, date.seconds(since: self.date))
        }
        return self.guessedLifetime
    }

    /// A tenth of the time for which it had not changed when it was sent (RFC 9111 §4.2.2).
    private var guessedLifetime: Int64 {
        guard HeuristicStatus.contains(self.status) || self.control.isPublic,
            let modified = self.lastModified.flatMap({ HTTPDate($0, now: self.responseTime) })
        else { return 0 }
        return min(max(0, self.date.seconds(since: modified)) / 10, Self.heuristicLifetimeLimit)
    }

    /// How many seconds ago the response was made or last validated (RFC 9111 §4.2.3).
    package func age(at now: HTTPDate) -> Int64 {
        let told =
            self.fields[values: .age].first?.trimmingBlanks.clampedDecimal(limit: CacheControl.maximumSeconds) ?? 0
        let apparent = max(0, self.responseTime.seconds(since: self.date))
        let delay = max(0, self.responseTime.seconds(since: self.requestTime))
        // The clock of this machine may have been set back since.
        let resident = max(0, now.seconds(since: self.responseTime))
        return max(apparent, told + delay) + resident
    }

    package func isFresh(at now: HTTPDate) -> Bool { self.lifetime > self.age(at: now) }

    /// Whether the response may stand in, stale as it is, for one that could not be had (RFC 5861 §4).
    package func mayServeStaleOnError(at now: HTTPDate) -> Bool {
        let control = self.control
        guard !control.mustRevalidate, !control.noCache, let grace = control.staleIfError else { return false }
        return self.age(at: now) - self.lifetime <= grace
    }
}

extension CacheEntry {
    /// Fields of a 304 that say nothing about the stored content (RFC 9111 §3.2).
    private static let kept: Set<HTTPField.Name> = [
        .contentEncoding, .contentLength, .contentRange, .contentType, .eTag,
    ]

    /// Fields of the entry and of a 304 together beyond which they are not merged.
    package static let fieldLimit = 4096

    /// The entry with what a 304 told about it (RFC 9111 §4.3.4).
    ///
    /// - Parameters:
    ///   - fields: of the 304.
    ///   - requestTime: of the request that the 304 answers, as `responseTime` of the 304 itself.
    /// - Returns: `nil` when the 304 is about another response than the one that is stored: load it anew.
    package func freshened(by fields: HTTPFields, requestTime: HTTPDate, responseTime: HTTPDate) -> Self? {
        guard self.isMeant(by: fields), self.fields.count + fields.count <= Self.fieldLimit else { return nil }
        let news = HopByHop.removed(from: fields)
        var merged = self.fields
        for name in Set(news.map(\.name)) where !Self.kept.contains(name) {
            merged[fields: name] = news[fields: name]
        }
        // An age that the 304 does not tell is not that of long ago.
        if !news.contains(.age) { merged[.age] = nil }
        return Self(
            status: self.status, fields: merged, varyKey: self.varyKey, requestTime: requestTime,
            responseTime: responseTime)
    }

    private func isMeant(by fields: HTTPFields) -> Bool {
        if let line = fields[values: .eTag].first, let told = EntityTag(line) {
            guard let ours = self.entityTag else { return false }
            // A server that compresses may weaken the tag of one answer and not of the other: the 304 itself came of a
            // weak comparison (RFC 9110 §13.1.2).
            return told.weaklyMatches(ours)
        }
        if self.entityTag == nil, let told = fields[values: .lastModified].first, let ours = self.lastModified {
            return told.trimmingBlanks == ours.trimmingBlanks
        }
        return true
    }
}

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
        case .reloadIgnoringLocalCacheData:
            return .load([:])
        case .reloadIgnoringLocalAndRemoteCacheData:
            return .load([.cacheControl: "no-cache", .pragma: "no-cache"])
        case .returnCacheDataElseLoad:
            return usable == nil ? .load([:]) : .useStored
        case .returnCacheDataDontLoad:
            return usable == nil ? .unavailable : .useStored
        case .reloadRevalidatingCacheData:
            return usable.map(Self.asking) ?? .load([:])
        case .useProtocolCachePolicy:
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
        guard method == .get || method == .head, entry.varyKey.matches(fields) else { return false }
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

/// What a request wants of the cache: the policies of `URLRequest`, by their meaning.
package enum CachePolicy: Equatable, Sendable, CaseIterable {
    /// What RFC 9111 says.
    case useProtocolCachePolicy
    /// As if nothing were kept here.
    case reloadIgnoringLocalCacheData
    /// The same, and caches on the way are told so too.
    case reloadIgnoringLocalAndRemoteCacheData
    /// What is kept here, however old; else from the server.
    case returnCacheDataElseLoad
    /// What is kept here, however old; else nothing.
    case returnCacheDataDontLoad
    /// What is kept here once the server has said that it still holds.
    case reloadRevalidatingCacheData
}

/// What a cache forgets after a request that may have changed things (RFC 9111 §4.4).
package enum CacheInvalidation {
    /// Whether the stored answer for the request's target is to be forgotten.
    package static func invalidatesTarget(method: HTTPRequest.Method, status: Int) -> Bool {
        !MethodTraits.isSafe(method) && (200...399).contains(status)
    }

    /// References in `Location` and `Content-Location` whose stored answers are to be forgotten too, once they are
    /// resolved, and only where they are of the target's own origin: else one site could empty another's cache.
    package static func invalidatedReferences(method: HTTPRequest.Method, status: Int, fields: HTTPFields) -> [String] {
        guard self.invalidatesTarget(method: method, status: status) else { return [] }
        return [.location, .contentLocation].compactMap { fields[values: $0].first }
    }
}

/// Whether a response may be kept in a private cache (RFC 9111 §3).
package enum Storability: Equatable, Sendable {
    case storable
    case refused(Reason)

    package enum Reason: Equatable, Sendable {
        /// Only answers to GET are kept.
        case method
        /// An interim answer, one to a condition, a part, or one that nothing says may be kept.
        case status
        /// The request or the response forbade it.
        case noStore
        /// It is an answer to no other request.
        case varies
    }

    /// - Parameter requestFields: as they were sent.
    package static func evaluate(
        method: HTTPRequest.Method, requestFields: HTTPFields, status: Int, fields: HTTPFields
    ) -> Self {
        guard method == .get, !requestFields.contains(.range) else { return .refused(.method) }
        let control = CacheControl(fields)
        guard !CacheControl(requestFields).noStore else { return .refused(.noStore) }
        // Who understands the status may overlook a no-store that is there for others (RFC 9111 §5.2.2.3).
        let isUnderstood = HeuristicStatus.contains(status) && status != 206
        if control.mustUnderstand {
            guard isUnderstood else { return .refused(.status) }
        } else if control.noStore {
            return .refused(.noStore)
        }
        guard (200...599).contains(status), status != 206, status != 304 else { return .refused(.status) }
        let isExplicit =
            control.isPublic || control.isPrivate || control.maxAge != nil || fields.contains(.expires)
        guard isExplicit || isUnderstood else { return .refused(.status) }
        guard VaryKey(response: fields, request: requestFields).values != nil else { return .refused(.varies) }
        return .storable
    }
}

/// The status codes whose responses may be kept without being told for how long (RFC 9110 §15.1).
enum HeuristicStatus {
    static func contains(_ status: Int) -> Bool {
        switch status {
        case 200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501: true
        default: false
        }
    }
}

/// Which requests a stored response is an answer to, beyond their target (RFC 9111 §4.1).
package struct VaryKey: Equatable, Sendable {
    /// A response that varies by more fields than this is an answer to no other request.
    package static let limit = 64

    /// By name in lower case, what the request said; `nil` where it said nothing. `nil` as a whole for `Vary: *`.
    package let values: [String: String?]?

    package init(response: HTTPFields, request: HTTPFields) {
        let names = FieldList.elements(response[values: .vary]).map(\.loweredASCII)
        guard !names.contains("*"), names.count <= Self.limit else {
            self.values = nil
            return
        }
        self.values = Dictionary(names.map { ($0, Self.value($0, of: request)) }) { first, _ in first }
    }

    /// Brings back what was written.
    package init(values: [String: String?]?) {
        self.values = values
    }

    package func matches(_ request: HTTPFields) -> Bool {
        guard let values = self.values else { return false }
        return values.allSatisfy { Self.value($0.key, of: request) == $0.value }
    }

    /// All lines as one list: that their blanks differ makes no difference.
    private static func value(_ name: String, of request: HTTPFields) -> String? {
        guard let name = HTTPField.Name(name) else { return nil }
        let lines = request[values: name]
        return lines.isEmpty ? nil : FieldList.elements(lines).joined(separator: ",")
    }
}
