extension ValueSyntax<Int> {
    /// Decimal digits.
    package static func integer(_ range: ClosedRange<Int>) -> ValueSyntax {
        ValueSyntax(.integer(range)) { text throws(TextFault) in
            guard let number = Decimal.integer(text.utf8), range.contains(number) else {
                throw TextFault(expected: "a whole number from \(range.lowerBound) to \(range.upperBound)")
            }
            return number
        }
    }

    /// Bytes: digits alone, or with `B`, `kB`, `KB`, `MB`, `GB` (powers of 1000), `KiB`, `MiB`, `GiB` (powers of 1024).
    package static func size(_ range: ClosedRange<Int>) -> ValueSyntax {
        ValueSyntax(.size(range)) { text throws(TextFault) in
            let expected = "a size from \(SizeText(range.lowerBound)) to \(SizeText(range.upperBound))"
            guard let size = SizeText(parsing: text) else {
                throw TextFault(expected: expected, remedy: "write it like 65536, 64KiB, 1MiB or 16MB")
            }
            guard range.contains(size.bytes) else { throw TextFault(expected: expected) }
            return size.bytes
        }
    }

    /// Events a second: `500/s`.
    package static func rate(_ range: ClosedRange<Int>) -> ValueSyntax {
        ValueSyntax(.rate(range)) { text throws(TextFault) in
            guard text.hasSuffix("/s"), let number = Decimal.integer(text.utf8.dropLast(2)), range.contains(number)
            else {
                throw TextFault(
                    expected: "a rate from \(range.lowerBound)/s to \(range.upperBound)/s",
                    remedy: "write it like 500/s")
            }
            return number
        }
    }
}

extension ValueSyntax<Duration> {
    /// `25s`, `1m30s`, `500ms`, `1h`, `7d`.
    package static func duration(_ range: ClosedRange<Duration>) -> ValueSyntax {
        ValueSyntax(.duration(range)) { text throws(TextFault) in
            let expected =
                "a duration from \(DurationText(range.lowerBound)) to \(DurationText(range.upperBound))"
            guard let duration = DurationText(parsing: text) else {
                let lacksUnit = Decimal.integer(text.utf8) != nil
                throw TextFault(
                    expected: expected,
                    remedy: lacksUnit ? "add a unit: \(text)s is seconds" : "write it like 500ms, 25s, 1m30s, 1h or 7d")
            }
            guard range.contains(duration.duration) else { throw TextFault(expected: expected) }
            return duration.duration
        }
    }
}

extension ValueSyntax<UInt32> {
    /// Permission bits in octal, `0660`.
    package static var permissions: ValueSyntax {
        ValueSyntax(.text(example: "0660", pattern: "^(0o)?[0-7]{3,4}$")) { text throws(TextFault) in
            let digits = text.hasPrefix("0o") ? text.dropFirst(2) : text[...]
            guard (3...4).contains(digits.utf8.count), digits.utf8.allSatisfy({ (0x30...0x37).contains($0) }),
                let bits = UInt32(digits, radix: 8), bits <= 0o777
            else {
                throw TextFault(expected: "permission bits in octal, 0000 to 0777", remedy: "write it like 0660")
            }
            return bits
        }
    }
}

extension ValueSyntax<Bool> {
    package static var boolean: ValueSyntax {
        ValueSyntax(.boolean) { text throws(TextFault) in
            switch text {
            case "true": return true
            case "false": return false
            default: throw TextFault(expected: "true or false")
            }
        }
    }
}

extension ValueSyntax where Value: CaseIterable & RawRepresentable, Value.RawValue == String {
    /// One of the words of an enumeration.
    package static var choice: ValueSyntax {
        ValueSyntax(.choice(Value.allCases.map(\.rawValue))) { text throws(TextFault) in
            if let value = Value(rawValue: text) { return value }
            let words = Value.allCases.map(\.rawValue)
            throw TextFault(
                expected: "one of " + words.joined(separator: ", "),
                remedy: Spelling.nearest(to: text, among: words).map { "did you mean \($0)?" } ?? "")
        }
    }
}
