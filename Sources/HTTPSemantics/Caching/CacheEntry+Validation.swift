import HTTPTypes

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
            status: self.status, fields: merged, selection: self.selection, requestTime: requestTime,
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
