import WireText

/// The parts of a file that a `Range` field asks for (RFC 9110 §14).
package enum ByteRanges: Hashable, Sendable {
    /// Everything: no range, another unit, a malformed field, or one that asks for more work than a browser does.
    case whole
    /// At least one; in the order of the request.
    case parts([Range<Int64>])
    /// None lies within the file: 416.
    case unsatisfiable

    /// Most parts of a request; with more it gets the whole file.
    package static let limit = 16

    /// - Parameters:
    ///   - fields: every value of the field `Range`.
    ///   - size: length of the file in bytes.
    package init(_ fields: [String], size: Int64) {
        self = .whole
        guard fields.count == 1, let specifiers = Self.specifiers(fields[0]),
            (1...Self.limit).contains(specifiers.count)
        else { return }
        var parts: [Range<Int64>] = []
        for specifier in specifiers {
            guard let part = Self.part(specifier, size: size) else { return }
            if !part.isEmpty { parts.append(part) }
        }
        guard !parts.isEmpty else {
            self = .unsatisfiable
            return
        }
        // Overlapping parts would send a small file many times over: RFC 9110 §14.2.
        guard parts.count == 1 || !Self.overlap(parts) else { return }
        self = .parts(parts)
    }

    private static func specifiers(_ value: String) -> [Substring]? {
        guard value.beginsIgnoringCase("bytes=") else { return nil }
        return value.utf8.dropFirst(6).split(separator: UInt8(ascii: ","), maxSplits: Self.limit + 1)
            .map { Substring(Substring($0).trimmingBlanks) }.filter { !$0.isEmpty }
    }

    /// - Returns: an empty range for a part beyond the end; `nil` for malformed text, and for the end of an empty file.
    private static func part(_ text: Substring, size: Int64) -> Range<Int64>? {
        let ends = text.utf8.split(separator: UInt8(ascii: "-"), maxSplits: 1, omittingEmptySubsequences: false)
            .map { Substring($0) }
        guard ends.count == 2 else { return nil }
        if ends[0].isEmpty {
            // The last bytes of an empty file can be had (RFC 9110 §14.1.2), but no Content-Range names them: it is sent whole.
            guard let count = Self.position(ends[1]), size > 0 || count == 0 else { return nil }
            return max(0, size - count)..<size
        }
        guard let first = Self.position(ends[0]) else { return nil }
        if ends[1].isEmpty { return first < size ? first..<size : 0..<0 }
        guard let last = Self.position(ends[1]), last >= first else { return nil }
        return first < size ? first..<(min(last, size - 1) + 1) : 0..<0
    }

    /// A number of any length: one beyond `Int64` lies beyond the end of every file (RFC 9110 §14.1.2).
    private static func position(_ digits: Substring) -> Int64? { digits.clampedDecimal(limit: .max) }

    private static func overlap(_ parts: [Range<Int64>]) -> Bool {
        let sorted = parts.sorted { $0.lowerBound < $1.lowerBound }
        return zip(sorted, sorted.dropFirst()).contains { $0.upperBound > $1.lowerBound }
    }
}
