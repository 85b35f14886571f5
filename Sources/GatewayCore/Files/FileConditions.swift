import HTTPSemantics
import StreamTransport
import WireText

/// What identifies a version of a file, and the conditions of a request on it (RFC 9110 §13).
package struct FileValidators: Hashable, Sendable {
    /// Strong: from inode, size and time of change.
    package let entityTag: String
    /// In whole seconds.
    package let lastModified: HTTPDate

    package init(inode: UInt64, size: Int64, modified: Int64) {
        let parts = [inode, UInt64(bitPattern: size), UInt64(bitPattern: modified)].map { String($0, radix: 16) }
        self.entityTag = "\"\(parts.joined(separator: "-"))\""
        self.lastModified = HTTPDate(seconds: modified.floorDivided(by: 1_000_000_000))
    }

    package enum Outcome: Hashable, Sendable {
        case proceed
        /// 304.
        case notModified
        /// 412.
        case preconditionFailed
    }

    /// Evaluates the conditions in the order of RFC 9110 §13.2.2, for GET and HEAD.
    package func evaluate(_ fields: FieldLines, now: HTTPDate) -> Outcome {
        if fields["If-Match"] != nil {
            guard self.matches(fields.list("If-Match"), weakly: false) else { return .preconditionFailed }
        } else if let since = self.date(fields, "If-Unmodified-Since", now: now), self.lastModified > since {
            return .preconditionFailed
        }
        if fields["If-None-Match"] != nil {
            return self.matches(fields.list("If-None-Match"), weakly: true) ? .notModified : .proceed
        }
        if let since = self.date(fields, "If-Modified-Since", now: now), self.lastModified <= since {
            return .notModified
        }
        return .proceed
    }

    /// Whether a range applies: there is no `If-Range`, or its strong validator names this version (RFC 9110 §13.1.5).
    /// - Parameter now: the response's `Date`.
    package func allowRange(_ fields: FieldLines, now: HTTPDate) -> Bool {
        let field = fields.single("If-Range")
        guard let value = field.first else { return true }
        guard !field.isRepeated else { return false }
        if value.utf8.first == UInt8(ascii: "\"") || value.utf8.starts(with: "W/".utf8) {
            return value.utf8.elementsEqual(self.entityTag.utf8)
        }
        // While its second lasts, another change could have the same date: it is weak (RFC 9110 §8.8.2.2).
        return HTTPDate(value, now: now) == self.lastModified && self.lastModified < now
    }

    private func matches(_ tags: [String], weakly: Bool) -> Bool {
        let own = ["*", self.entityTag] + (weakly ? ["W/\(self.entityTag)"] : [])
        return tags.contains { tag in own.contains { $0.utf8.elementsEqual(tag.utf8) } }
    }

    /// `nil` without the field, with several, or with one that is no date: then it is ignored.
    private func date(_ fields: FieldLines, _ name: String, now: HTTPDate) -> HTTPDate? {
        let field = fields.single(name)
        guard field.occursOnce else { return nil }
        return field.first.flatMap { HTTPDate($0, now: now) }
    }
}

/// A coding in which a file may lie beside the plain one.
package enum FileCoding: String, CaseIterable, Sendable {
    case brotli = "br"
    case gzip

    /// Of the compressed copy's name.
    package var suffix: String {
        switch self {
        case .brotli: ".br"
        case .gzip: ".gz"
        }
    }

    /// The codings that the client accepts, the preferred first; of equal ones, Brotli is smaller.
    /// - Source: RFC 9110 §12.5.3. Without the field a client accepts all, but old ones read none.
    package static func accepted(_ fields: FieldLines) -> [FileCoding] {
        var weights: [String: Int] = [:]
        for element in fields.list("Accept-Encoding") {
            let parts = element.utf8.split(separator: UInt8(ascii: ";"), maxSplits: 1).map {
                Substring($0).trimmingBlanks
            }
            guard let name = parts.first?.loweredASCII, name.isToken else { continue }
            weights[name == "x-gzip" ? "gzip" : name] = parts.count > 1 ? Self.weight(parts[1]) : 1000
        }
        let identity = weights["identity"] ?? 0
        let ranked = Self.allCases.map { ($0, weights[$0.rawValue] ?? weights["*"] ?? 0) }
        return ranked.filter { $0.1 > 0 && $0.1 >= identity }.sorted { $0.1 > $1.1 }.map(\.0)
    }

    /// Thousandths; malformed text counts as refused.
    private static func weight(_ text: String) -> Int {
        guard text.beginsIgnoringCase("q=") else { return 0 }
        let digits = text.utf8.dropFirst(2)
            .split(separator: UInt8(ascii: "."), maxSplits: 1, omittingEmptySubsequences: false).map { Substring($0) }
        guard let whole = digits.first?.decimal, whole <= 1 else { return 0 }
        guard digits.count == 2, !digits[1].isEmpty else { return Int(whole) * 1000 }
        guard digits[1].utf8.count <= 3, let fraction = digits[1].decimal else { return 0 }
        let scale = [0, 100, 10, 1][digits[1].utf8.count]
        let weight = Int(whole) * 1000 + Int(fraction) * scale
        return weight <= 1000 ? weight : 0
    }
}
