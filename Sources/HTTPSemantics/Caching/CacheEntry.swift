import HTTPTypes
import WireText

/// The metadata of a stored response (RFC 9111 §3).
package struct CacheEntry: Equatable, Sendable {
    package let status: Int
    package let fields: HTTPFields
    package let control: CacheControl
    /// The values of the request fields that `Vary` nominates.
    package let varyKey: VaryKey
    /// The local times at which the request was sent and the response received.
    package let requestTime: HTTPDate
    package let responseTime: HTTPDate

    /// - Parameters:
    ///   - fields: of the response; hop-by-hop fields are removed here.
    ///   - requestFields: as they were sent.
    package init(
        status: Int, fields: HTTPFields, requestFields: HTTPFields, requestTime: HTTPDate, responseTime: HTTPDate
    ) {
        self.init(
            status: status, fields: HopByHop.removed(from: fields),
            varyKey: VaryKey(response: fields, request: requestFields), requestTime: requestTime,
            responseTime: responseTime)
    }

    /// Restores a stored entry.
    package init(status: Int, fields: HTTPFields, varyKey: VaryKey, requestTime: HTTPDate, responseTime: HTTPDate) {
        self.status = status
        self.fields = fields
        self.control = CacheControl(fields)
        self.varyKey = varyKey
        self.requestTime = requestTime
        self.responseTime = responseTime
    }

    package var entityTag: EntityTag? { self.fields[values: .eTag].first.flatMap { EntityTag($0) } }

    /// The field as received, which is how it must be sent back; `nil` if it is not a valid date.
    package var lastModified: String? {
        let value = self.fields[values: .lastModified].first
        return value.flatMap { HTTPDate($0, now: self.responseTime) } == nil ? nil : value
    }

    /// The `Date` field, or else the response time.
    var date: HTTPDate {
        self.fields[values: .date].first.flatMap { HTTPDate($0, now: self.responseTime) } ?? self.responseTime
    }

    /// Longest heuristic lifetime in seconds: a week.
    private static let heuristicLifetimeLimit: Int64 = 7 * 86_400

    /// The freshness lifetime in seconds, for a private cache (RFC 9111 §4.2.1).
    package var lifetime: Int64 {
        if let maxAge = self.control.maxAge { return maxAge }
        if let expires = self.fields[values: .expires].first {
            // An invalid date, especially "0", is in the past (§5.3).
            guard let date = HTTPDate(expires, now: self.responseTime, isStrict: true) else { return 0 }
            return max(0, date.seconds(since: self.date))
        }
        return self.heuristicLifetime
    }

    /// A tenth of the time since the last modification (RFC 9111 §4.2.2).
    private var heuristicLifetime: Int64 {
        guard HeuristicStatus.contains(self.status) || self.control.isPublic,
            let modified = self.lastModified.flatMap({ HTTPDate($0, now: self.responseTime) })
        else { return 0 }
        return min(max(0, self.date.seconds(since: modified)) / 10, Self.heuristicLifetimeLimit)
    }

    /// Seconds since the response was generated or validated (RFC 9111 §4.2.3).
    package func age(at now: HTTPDate) -> Int64 {
        // Of several values the first one counts (§5.1).
        let ageField =
            FieldList.elements(self.fields[values: .age]).first?.clampedDecimal(limit: CacheControl.maximumSeconds) ?? 0
        let apparent = max(0, self.responseTime.seconds(since: self.date))
        let delay = max(0, self.responseTime.seconds(since: self.requestTime))
        // The local clock may have been set back.
        let resident = max(0, now.seconds(since: self.responseTime))
        return max(apparent, ageField + delay) + resident
    }

    package func isFresh(at now: HTTPDate) -> Bool { self.lifetime > self.age(at: now) }

    /// Fields that a 304 does not update (RFC 9111 §3.2).
    private static let excludedFromUpdate: Set<HTTPField.Name> = [
        .contentEncoding, .contentLength, .contentRange, .contentType, .eTag,
    ]

    /// Most fields of the entry and a 304 together that are merged.
    package static let fieldLimit = 4096

    /// The entry freshened by a 304 (RFC 9111 §4.3.4).
    ///
    /// - Parameters:
    ///   - fields: of the 304.
    ///   - requestFields: of the conditional request, as they were sent.
    ///   - requestTime: of the conditional request.
    ///   - responseTime: of the 304.
    /// - Returns: `nil` if the 304 does not match the stored response, which must then be loaded again.
    package func freshened(
        by fields: HTTPFields, requestFields: HTTPFields, requestTime: HTTPDate, responseTime: HTTPDate
    ) -> Self? {
        guard self.isSelected(by: fields), self.fields.count + fields.count <= Self.fieldLimit else { return nil }
        let update = HopByHop.removed(from: fields)
        var merged = self.fields
        for name in Set(update.map(\.name)) where !Self.excludedFromUpdate.contains(name) {
            merged[fields: name] = update[fields: name]
        }
        // Without an Age in the 304 the stored one is outdated, and without a Date the stored one (RFC 9110 §6.6.1).
        if !update.contains(.age) { merged[.age] = nil }
        if !update.contains(.date) { merged[.date] = responseTime.formatted }
        // The 304 may have a Vary of its own.
        return Self(
            status: self.status, fields: merged, requestFields: requestFields, requestTime: requestTime,
            responseTime: responseTime)
    }

    private func isSelected(by fields: HTTPFields) -> Bool {
        if let line = fields[values: .eTag].first, let received = EntityTag(line) {
            guard let stored = self.entityTag else { return false }
            // Compressing servers may weaken the tag of only one of the responses; the server compared weakly for its
            // 304 (RFC 9110 §13.1.2).
            return received.weaklyMatches(stored)
        }
        if self.entityTag == nil, let received = fields[values: .lastModified].first, let stored = self.lastModified {
            return received.trimmingBlanks.utf8.elementsEqual(stored.trimmingBlanks.utf8)
        }
        return true
    }
}

/// How to answer a request.
package enum CacheDecision: Equatable, Sendable {
    /// From the cache, without validation.
    case useStored
    /// Send a conditional request: the fields to add to it.
    case validate(HTTPFields)
    /// Send the request: the fields to add to it, mostly none.
    case load(HTTPFields)
    /// Fail: only a cached response is acceptable, and there is none.
    case unavailable

    /// - Parameters:
    ///   - entry: the stored response for the request's target, if any.
    ///   - fields: of the request, without fields added by the cache.
    package static func decide(
        _ policy: CachePolicy, method: HTTPRequest.Method, fields: HTTPFields, entry: CacheEntry?, now: HTTPDate
    ) -> Self {
        let usable = entry.flatMap { self.matches($0, method: method, fields: fields) ? $0 : nil }
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
            return usable.map(Self.validation) ?? .load([:])
        case .useProtocolCachePolicy:
            return self.protocolDecision(fields: fields, entry: usable, now: now)
        }
    }

    private static func protocolDecision(fields: HTTPFields, entry: CacheEntry?, now: HTTPDate) -> Self {
        let request = CacheControl(fields)
        guard let entry, !request.noStore else { return request.onlyIfCached ? .unavailable : .load([:]) }
        let needsValidation = request.noCache || entry.control.noCache
        if !needsValidation, self.isFreshEnough(entry, for: request, now: now) { return .useStored }
        return request.onlyIfCached ? .unavailable : self.validation(entry)
    }

    private static func matches(_ entry: CacheEntry, method: HTTPRequest.Method, fields: HTTPFields) -> Bool {
        guard method == .get || method == .head, entry.varyKey.matches(fields) else { return false }
        // Conditional and range requests of the caller go to the server.
        let conditional: [HTTPField.Name] = [
            .range, .ifMatch, .ifNoneMatch, .ifModifiedSince, .ifUnmodifiedSince, .ifRange,
        ]
        return !conditional.contains(where: fields.contains)
    }

    /// RFC 9111 §4.2 and §5.2.1: the request may require more than freshness, or accept staleness.
    private static func isFreshEnough(_ entry: CacheEntry, for request: CacheControl, now: HTTPDate) -> Bool {
        let age = entry.age(at: now)
        // 0 asks for a validation, also within the second in which the response was stored: so browsers mean it.
        if let maxAge = request.maxAge, maxAge == 0 || age > maxAge { return false }
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

    /// A conditional request, or a plain one if the entry has no validator (RFC 9111 §4.3.1).
    private static func validation(_ entry: CacheEntry) -> Self {
        var fields = HTTPFields()
        if let tag = entry.entityTag { fields[.ifNoneMatch] = tag.fieldValue }
        if let modified = entry.lastModified { fields[.ifModifiedSince] = modified }
        return fields.isEmpty ? .load([:]) : .validate(fields)
    }
}

/// The cache policies of `URLRequest`.
package enum CachePolicy: Equatable, Sendable, CaseIterable {
    /// As RFC 9111 specifies.
    case useProtocolCachePolicy
    /// Ignores stored responses.
    case reloadIgnoringLocalCacheData
    /// Ignores stored responses, also those of intermediaries (`no-cache`).
    case reloadIgnoringLocalAndRemoteCacheData
    /// Uses the stored response whatever its age, else loads it.
    case returnCacheDataElseLoad
    /// Uses the stored response whatever its age, else fails.
    case returnCacheDataDontLoad
    /// Validates the stored response with the server.
    case reloadRevalidatingCacheData
}

/// Invalidation of stored responses by unsafe requests (RFC 9111 §4.4).
package enum CacheInvalidation {
    /// Whether to remove the stored response of the request's target.
    package static func invalidatesTarget(method: HTTPRequest.Method, status: Int) -> Bool {
        !MethodTraits.isSafe(method) && (200...399).contains(status)
    }

    /// Whether the response to a GET takes the place of a stored one even if it may not be stored itself.
    /// - Parameter requestFields: as they were sent.
    package static func replacesStored(
        method: HTTPRequest.Method, requestFields: HTTPFields, status: Int
    ) -> Bool {
        guard method == .get, !requestFields.contains(.range) else { return false }
        return (200...299).contains(status) && status != 206 || status == 404 || status == 410
    }

    /// Whether the response to a HEAD shows that a stored response to a GET is outdated: one of its validators, or its
    /// length, is another one (RFC 9111 §4.3.5).
    /// - Parameter requestFields: of the HEAD, as they were sent.
    package static func isOutdated(_ entry: CacheEntry, byHead fields: HTTPFields, requestFields: HTTPFields) -> Bool {
        // It may be about another representation.
        guard entry.varyKey == VaryKey(response: entry.fields, request: requestFields) else { return false }
        return [.eTag, .lastModified, .contentLength].contains { (name: HTTPField.Name) in
            guard let stored = entry.fields[values: name].first, let found = fields[values: name].first else {
                return false
            }
            return !stored.trimmingBlanks.utf8.elementsEqual(found.trimmingBlanks.utf8)
        }
    }

    /// The references in `Location` and `Content-Location` whose stored responses are to be removed too, if they
    /// resolve to the target's own origin: otherwise one site could empty another's cache.
    package static func invalidatedReferences(method: HTTPRequest.Method, status: Int, fields: HTTPFields) -> [String] {
        guard self.invalidatesTarget(method: method, status: status) else { return [] }
        return [.location, .contentLocation].compactMap { fields[values: $0].first }
    }
}

/// Whether a private cache may store a response (RFC 9111 §3).
package enum Storability: Equatable, Sendable {
    case storable
    case refused(Reason)

    package enum Reason: Equatable, Sendable {
        /// Not a GET, or a range request.
        case method
        /// An interim or partial response, a 304, or a status that is not cacheable by default.
        case status
        /// `no-store` in the request or the response.
        case noStore
        /// `Vary: *`, or too many fields in `Vary`.
        case varies
    }

    /// - Parameter requestFields: as they were sent.
    package static func evaluate(
        method: HTTPRequest.Method, requestFields: HTTPFields, status: Int, fields: HTTPFields
    ) -> Self {
        guard method == .get, !requestFields.contains(.range) else { return .refused(.method) }
        let control = CacheControl(fields)
        guard !CacheControl(requestFields).noStore else { return .refused(.noStore) }
        // must-understand overrides no-store for a cache that understands the status (RFC 9111 §5.2.2.3).
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

/// The heuristically cacheable status codes (RFC 9110 §15.1).
private enum HeuristicStatus {
    static func contains(_ status: Int) -> Bool {
        switch status {
        case 200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501: true
        default: false
        }
    }
}

/// The primary cache key (RFC 9111 §2): the same for URLs that RFC 9110 §4.2.3 calls equivalent, except for those that differ in
/// percent-encoding.
package enum CacheKey {
    /// - Returns: the URL with scheme and host in lower case, without a port that is the scheme's, with a path, and without its
    ///   fragment, which is not sent to servers. Of a URL without a host only the fragment is removed.
    package static func text(of url: String) -> String {
        let whole = url.utf8.prefix { $0 != UInt8(ascii: "#") }
        guard let colon = whole.firstIndex(of: UInt8(ascii: ":")), whole[colon...].starts(with: "://".utf8) else {
            return String(whole) ?? url
        }
        let scheme = whole[..<colon].map(\.loweredASCII)
        let rest = whole[colon...].dropFirst("://".utf8.count)
        let end = rest.firstIndex { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") } ?? rest.endIndex
        var key = scheme + Array("://".utf8) + Self.authority(rest[..<end], scheme)
        if rest[end...].first != UInt8(ascii: "/") { key.append(UInt8(ascii: "/")) }
        key += rest[end...]
        return String(decoding: key, as: UTF8.self)
    }

    private static func authority(_ text: Substring.UTF8View, _ scheme: [UInt8]) -> [UInt8] {
        let hostStart = text.lastIndex(of: UInt8(ascii: "@")).map { text.index(after: $0) } ?? text.startIndex
        var host = text[hostStart...].map(\.loweredASCII)
        if let colon = host.lastIndex(of: UInt8(ascii: ":")), !host[colon...].contains(UInt8(ascii: "]")) {
            let port = String(decoding: host[(colon + 1)...], as: UTF8.self)
            let isStandard =
                scheme == Array("http".utf8) && port == "80" || scheme == Array("https".utf8) && port == "443"
            if isStandard || port.isEmpty { host.removeSubrange(colon...) }
        }
        return Array(text[..<hostStart]) + host
    }
}

/// The secondary cache key: the values of the request fields that `Vary` nominates (RFC 9111 §4.1).
package struct VaryKey: Equatable, Sendable {
    /// Most fields in `Vary`; a response with more matches no other request.
    package static let limit = 64

    /// The request's values by field name in lower case, `nil` for an absent field. `nil` as a whole for `Vary: *`.
    package let values: [String: String?]?

    package init(response: HTTPFields, request: HTTPFields) {
        // Comparing other texts may take long, and they nominate no field.
        let names = FieldList.elements(response[values: .vary]).map(\.loweredASCII).filter { HTTPField.Name($0) != nil }
        guard !names.contains("*"), names.count <= Self.limit else {
            self.values = nil
            return
        }
        self.values = Dictionary(names.map { ($0, Self.value($0, of: request)) }) { first, _ in first }
    }

    /// Restores a stored key.
    package init(values: [String: String?]?) {
        self.values = values
    }

    package func matches(_ request: HTTPFields) -> Bool {
        guard let values = self.values else { return false }
        return values.allSatisfy { Self.value($0.key, of: request) == $0.value }
    }

    /// All lines combined into one list, normalized in whitespace.
    private static func value(_ name: String, of request: HTTPFields) -> String? {
        guard let name = HTTPField.Name(name) else { return nil }
        let lines = request[values: name]
        return lines.isEmpty ? nil : FieldList.elements(lines).joined(separator: ",")
    }
}
