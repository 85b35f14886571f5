/// An IPv4 or IPv6 address.
package enum IPAddress: Sendable, Hashable {
    /// The four bytes, the first on the wire highest.
    case v4(UInt32)
    /// The first and the last eight bytes on the wire.
    case v6(high: UInt64, low: UInt64)

    /// 127.0.0.1.
    package static let loopback = IPAddress.v4(0x7F00_0001)

    package var bitWidth: Int {
        switch self {
        case .v4: 32
        case .v6: 128
        }
    }

    /// The same with all but the first `length` bits 0. A `length` of no sense is held to 0 and `bitWidth`.
    package func prefix(_ length: Int) -> IPAddress {
        switch self {
        case .v4(let bits): .v4(bits & Self.mask(length))
        case .v6(let high, let low): .v6(high: high & Self.mask(length), low: low & Self.mask(length - 64))
        }
    }

    /// The IPv4 address inside `::ffff:a.b.c.d` (RFC 4291 §2.5.5.2), else itself.
    package var unmapped: IPAddress {
        guard case .v6(0, let low) = self, low >> 32 == 0xFFFF else { return self }
        return .v4(UInt32(truncatingIfNeeded: low))
    }

    private static func mask<Word: FixedWidthInteger & UnsignedInteger>(_ length: Int) -> Word {
        // Swift's smart shift gives 0 when all bits leave.
        ~(Word.max >> max(0, min(length, Word.bitWidth)))
    }
}

extension IPAddress: CustomStringConvertible {
    /// Dotted decimals, or RFC 5952's form.
    package var description: String {
        switch self {
        case .v4(let bits):
            stride(from: 24, through: 0, by: -8).map { String(bits >> UInt32($0) & 0xFF) }.joined(separator: ".")
        case .v6(let high, let low):
            Self.canonicalText(
                of: [high, low].flatMap { half in
                    stride(from: 48, through: 0, by: -16).map { UInt16(truncatingIfNeeded: half >> UInt64($0)) }
                })
        }
    }

    /// RFC 5952 §4: lower case, no leading zeros, the longest run of at least two zero groups (the first of equals) as
    /// `::`.
    private static func canonicalText(of groups: [UInt16]) -> String {
        var best = 0..<0
        var start = 0
        while start < groups.count {
            let end = groups[start...].firstIndex { $0 != 0 } ?? groups.count
            if end - start > max(best.count, 1) { best = start..<end }
            start = end + 1
        }
        func text(_ range: Range<Int>) -> String {
            groups[range].map { String($0, radix: 16) }.joined(separator: ":")
        }
        guard !best.isEmpty else { return text(0..<groups.count) }
        return text(0..<best.lowerBound) + "::" + text(best.upperBound..<groups.count)
    }
}
