import HTTPTypes
import WireText

/// The `Cache-Control` directives of a request or response that apply to a private cache (RFC 9111 §5.2).
package struct CacheControl: Equatable, Sendable {
    /// The staleness that a request accepts (`max-stale`).
    package enum Staleness: Equatable, Sendable {
        case any
        /// Seconds beyond the freshness lifetime.
        case upTo(Int64)
    }

    /// Largest delta-seconds; greater values are clamped (RFC 9111 §1.2.2).
    package static let maximumSeconds: Int64 = 2_147_483_648

    package private(set) var noStore = false
    /// Also set by `no-cache` with field names: the whole response is then revalidated.
    package private(set) var noCache = false
    package private(set) var onlyIfCached = false
    package private(set) var mustRevalidate = false
    package private(set) var mustUnderstand = false
    package private(set) var isPublic = false
    package private(set) var isPrivate = false
    /// In seconds; 0 for an invalid value, so that the response is stale.
    package private(set) var maxAge: Int64?
    package private(set) var minFresh: Int64?
    package private(set) var maxStale: Staleness?

    /// - Parameter fields: of a request or response. `Pragma: no-cache` is used if there is no Cache-Control.
    package init(_ fields: HTTPFields) {
        let elements = FieldList.elements(fields[values: .cacheControl])
        for element in elements { self.apply(element) }
        if elements.isEmpty {
            let pragmas = FieldList.elements(fields[values: .pragma])
            self.noCache = pragmas.contains { $0.matchesIgnoringCase("no-cache") }
        }
    }

    private mutating func apply(_ element: String) {
        var scanner = FieldValueScanner(element)
        guard let name = scanner.token() else { return }
        scanner.skipWhitespace()
        var argument: String?
        if scanner.skip("=") {
            scanner.skipWhitespace()
            argument = scanner.quotedString() ?? scanner.rawText(to: ",").trimmingBlanks
        }
        self.apply(name.loweredASCII, argument)
    }

    /// The first of repeated directives wins (RFC 9111 §4.2.1).
    private mutating func apply(_ name: String, _ argument: String?) {
        switch name {
        case "no-store": self.noStore = true
        case "no-cache": self.noCache = true
        case "only-if-cached": self.onlyIfCached = true
        case "must-revalidate": self.mustRevalidate = true
        case "must-understand": self.mustUnderstand = true
        case "public": self.isPublic = true
        case "private": self.isPrivate = true
        // `s-maxage` and `proxy-revalidate` are for shared caches.
        case "max-age": self.maxAge = self.maxAge ?? Self.seconds(argument) ?? 0
        case "min-fresh": self.minFresh = self.minFresh ?? Self.seconds(argument)
        case "max-stale":
            self.maxStale = self.maxStale ?? (argument == nil ? .any : Self.seconds(argument).map { .upTo($0) })
        default: return
        }
    }

    private static func seconds(_ argument: String?) -> Int64? {
        argument?.clampedDecimal(limit: self.maximumSeconds)
    }
}

/// An entity tag (RFC 9110 §8.8.3).
package struct EntityTag: Equatable, Sendable {
    /// Longer tags are rejected.
    package static let limit = 4096

    package let isWeak: Bool
    /// With its quotes.
    package let opaqueTag: String

    /// - Returns: `nil` for an invalid tag. A tag without quotes, which some servers send, is accepted.
    package init?(_ text: String) {
        var text = text.trimmingBlanks
        guard text.utf8.count <= Self.limit, !text.isEmpty else { return nil }
        self.isWeak = text.hasPrefix("W/")
        if self.isWeak { text = String(text.dropFirst(2)) }
        let content =
            text.utf8.count >= 2 && text.hasPrefix("\"") && text.hasSuffix("\"")
            ? Array(text.utf8.dropFirst().dropLast()) : Array(text.utf8)
        guard !text.isEmpty, content.allSatisfy({ $0 > 0x20 && $0 != 0x7F && $0 != UInt8(ascii: "\"") }) else {
            return nil
        }
        self.opaqueTag = text
    }

    package var fieldValue: String { self.isWeak ? "W/" + self.opaqueTag : self.opaqueTag }

    /// Weak comparison (RFC 9110 §8.8.3.2).
    package func weaklyMatches(_ other: Self) -> Bool { self.opaqueTag == other.opaqueTag }
}
