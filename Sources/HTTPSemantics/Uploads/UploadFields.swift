import HTTPTypes
import WireText

/// Version of the protocol for resumable uploads: the number in `Upload-Draft-Interop-Version`.
///
/// - Source: draft-ietf-httpbis-resumable-upload, "Draft Version Identification" of each revision.
package enum UploadVersion: Int, Sendable, CaseIterable {
    /// Revision 01: `Upload-Incomplete` instead of `Upload-Complete`.
    case three = 3
    /// Revision 02.
    case four
    /// Revision 03.
    case five
    /// Revisions 04 and 05: parts are `application/partial-upload`.
    case six
    /// Revisions 06 to 08: the response to the last part has `Upload-Complete: ?1`.
    case seven
    /// Revisions 09 to 11.
    case eight
    /// From revision 12 on: the response of the target has `Upload-Complete: ?1`, also without a resumption.
    case nine

    package static let newest = Self.nine

    /// Whether the fields name a version, supported or not.
    package static func isNamed(by fields: HTTPFields) -> Bool { fields[.uploadDraftInteropVersion] != nil }

    /// - Returns: `nil` without a supported version.
    package init?(_ fields: HTTPFields) {
        guard let number = StructuredItem.integer(fields[values: .uploadDraftInteropVersion]),
            let version = Self(rawValue: Int(number))
        else { return nil }
        self = version
    }

    /// Whether the target's response to the last bytes of an upload is marked as such.
    func marksFinalResponse(ofPart isPart: Bool) -> Bool { self.rawValue >= (isPart ? 7 : 9) }

    /// The fields of the request that creates an upload with the whole content.
    /// - Parameter length: of the content; `nil` if unknown.
    package func creationFields(length: Int64?) -> HTTPFields {
        var fields = self.fields(isComplete: true)
        if self.rawValue >= 7, let length { fields[.uploadLength] = "\(length)" }
        return fields
    }

    /// The fields of the request for the offset.
    package var offsetFields: HTTPFields { [.uploadDraftInteropVersion: "\(self.rawValue)"] }

    /// The fields of the request that appends a part.
    package func fields(of part: UploadPart) -> HTTPFields {
        var fields = self.fields(isComplete: part.isLast)
        fields[.uploadOffset] = "\(part.offset)"
        if self.rawValue >= 6 { fields[.contentType] = "application/partial-upload" }
        return fields
    }

    private func fields(isComplete: Bool) -> HTTPFields {
        var fields = self.offsetFields
        if self == .three {
            fields[.uploadIncomplete] = isComplete ? "?0" : "?1"
        } else {
            fields[.uploadComplete] = isComplete ? "?1" : "?0"
        }
        return fields
    }

    /// Whether a request with these fields takes part in the protocol, or in tus, without the loader's help.
    package static func isSpoken(by fields: HTTPFields) -> Bool {
        let names: Set<HTTPField.Name> = [
            .uploadComplete, .uploadIncomplete, .uploadOffset, .uploadLength, .tusResumable,
        ]
        return fields.contains { names.contains($0.name) }
    }
}

/// A contiguous part of the content of an upload.
package struct UploadPart: Equatable, Sendable {
    package let offset: Int64
    /// In bytes; `nil` for all that follows, if its length is unknown.
    package let length: Int64?
    /// Whether the content ends with this part.
    package let isLast: Bool

    package init(offset: Int64, length: Int64?, isLast: Bool) {
        self.offset = offset
        self.length = length
        self.isLast = isLast
    }
}

/// Fields of a response about an upload.
package struct UploadState: Equatable, Sendable {
    package let offset: Int64?
    package let isComplete: Bool?
    package let length: Int64?
    package let limits: UploadLimits
    /// Seconds to wait before the next request (RFC 9110 §10.2.3).
    package let retryAfter: Int64?

    /// Fields that cannot be parsed, or occur more than once, are ignored.
    /// - Parameter now: when the response was received.
    package init(_ fields: HTTPFields, now: HTTPDate) {
        self.offset = StructuredItem.integer(fields[values: .uploadOffset])
        self.isComplete =
            StructuredItem.boolean(fields[values: .uploadComplete])
            ?? StructuredItem.boolean(fields[values: .uploadIncomplete]).map { !$0 }
        self.length = StructuredItem.integer(fields[values: .uploadLength])
        self.limits = UploadLimits(fields, now: now)
        let lines = fields[values: .retryAfter]
        self.retryAfter = lines.count == 1 ? Self.delay(lines[0].trimmingBlanks, now: now) : nil
    }

    /// The value of `Retry-After`: seconds, or a date.
    private static func delay(_ text: String, now: HTTPDate) -> Int64? {
        if let seconds = text.clampedDecimal(limit: 999_999_999_999_999) { return seconds }
        return HTTPDate(text, now: now).map { max(0, $0.seconds(since: now)) }
    }
}

/// `Upload-Limit`.
package struct UploadLimits: Equatable, Sendable {
    /// Most bytes of an upload.
    package private(set) var size: Int64?
    /// Most bytes of a part, at least 1.
    package private(set) var partSize: Int64?
    /// The end of the upload resource's lifetime, after which it must not be used any more.
    package private(set) var expiry: HTTPDate?

    package init() {}

    /// A field with a member of the wrong type is ignored as a whole.
    init(_ fields: HTTPFields, now: HTTPDate) {
        var (size, partSize, expiry) = (Int64?.none, Int64?.none, HTTPDate?.none)
        let members = FieldList.elements(fields[values: .uploadLimit])
        // RFC 9651 §4.2. Comparing keys of other characters may take long.
        guard members.allSatisfy({ $0.utf8.allSatisfy { $0 < 0x80 } }) else { return }
        for member in members {
            guard let equals = member.firstIndex(of: "=") else {
                // A key alone means true, which no known key may be.
                if Self.knownKeys.contains(Substring(member.prefix { $0 != ";" })) { return }
                continue
            }
            let key = member[..<equals]
            guard Self.knownKeys.contains(key) else { continue }
            guard let value = StructuredItem.integer(member[member.index(after: equals)...]) else { return }
            if key == "max-size" { size = value }
            if key == "max-append-size" { partSize = value > 0 ? value : nil }
            if key == "max-age" { expiry = now.advanced(by: value) }
        }
        (self.size, self.partSize, self.expiry) = (size, partSize, expiry)
    }

    private static let knownKeys: Set<Substring> = [
        "max-size", "min-size", "max-append-size", "min-append-size", "max-age",
    ]

    /// Replaces the limits that `newer` names.
    mutating func update(_ newer: UploadLimits) {
        self.size = newer.size ?? self.size
        self.partSize = newer.partSize ?? self.partSize
        self.expiry = newer.expiry ?? self.expiry
    }

    package init(partSize: Int64?, expiry: HTTPDate? = nil) {
        self.partSize = partSize.flatMap { $0 > 0 ? $0 : nil }
        self.expiry = expiry
    }
}

/// Items of structured fields (RFC 9651 §3.3). Parameters are ignored.
private enum StructuredItem {
    /// - Returns: a non-negative integer; `nil` for anything else, and unless there is exactly one line.
    static func integer(_ lines: [String]) -> Int64? {
        lines.count == 1 ? self.integer(lines[0][...]) : nil
    }

    static func integer(_ text: Substring) -> Int64? {
        let digits = self.bareItem(text)
        guard (1...15).contains(digits.utf8.count) else { return nil }
        return digits.clampedDecimal(limit: .max)
    }

    static func boolean(_ lines: [String]) -> Bool? {
        guard lines.count == 1 else { return nil }
        return switch self.bareItem(lines[0][...]) {
        case "?1": true
        case "?0": false
        default: nil
        }
    }

    private static func bareItem(_ text: Substring) -> String {
        String(text.prefix { $0 != ";" }).trimmingBlanks
    }
}

extension HTTPField.Name {
    static let uploadDraftInteropVersion = Self.known("Upload-Draft-Interop-Version")
    static let uploadComplete = Self.known("Upload-Complete")
    static let uploadIncomplete = Self.known("Upload-Incomplete")
    static let uploadOffset = Self.known("Upload-Offset")
    static let uploadLength = Self.known("Upload-Length")
    static let uploadLimit = Self.known("Upload-Limit")
    static let tusResumable = Self.known("Tus-Resumable")
}
