import HTTPTypes

/// By what a server tells whether the rest of a content still belongs to what was had before (RFC 9110 §13.1.5).
package enum ResumeValidator: Equatable, Sendable {
    case entityTag(String)
    case lastModified(String)

    /// The best that a response offers. Weak tags tell nothing about bytes, and so does a date less than a second
    /// before the response was made (RFC 9110 §8.8.2.2).
    package init?(_ fields: HTTPFields, now: HTTPDate) {
        if let tag = fields[values: .eTag].first.flatMap({ EntityTag($0) }), !tag.isWeak {
            self = .entityTag(tag.fieldValue)
            return
        }
        guard let line = fields[values: .lastModified].first, let modified = HTTPDate(line, now: now) else {
            return nil
        }
        let date = fields[values: .date].first.flatMap { HTTPDate($0, now: now) } ?? now
        guard modified < date else { return nil }
        self = .lastModified(line.trimmingBlanks)
    }

    /// The value of `If-Range`.
    package var fieldValue: String {
        switch self {
        case .entityTag(let value), .lastModified(let value): value
        }
    }

    /// Whether what a response says does not speak against this; a response need not repeat it.
    func isCompatible(with fields: HTTPFields) -> Bool {
        switch self {
        case .entityTag(let value):
            guard let told = fields[values: .eTag].first.flatMap({ EntityTag($0) }) else { return true }
            return told.fieldValue == value
        case .lastModified(let value):
            guard let told = fields[values: .lastModified].first else { return true }
            return told.trimmingBlanks == value
        }
    }
}
