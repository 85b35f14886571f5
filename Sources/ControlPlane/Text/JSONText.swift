import GatewayCore

/// Writes JSON (RFC 8259) straight into bytes: a list of thousands of connections must cost little.
package struct JSONText {
    package private(set) var bytes: [UInt8] = []
    /// Whether a comma stands before the next value.
    private var needsComma = false

    package init(capacity: Int = 0) {
        self.bytes.reserveCapacity(capacity)
    }

    // MARK: Structure

    package mutating func beginObject() { self.begin(UInt8(ascii: "{")) }
    package mutating func endObject() { self.end(UInt8(ascii: "}")) }
    package mutating func beginArray() { self.begin(UInt8(ascii: "[")) }
    package mutating func endArray() { self.end(UInt8(ascii: "]")) }

    private mutating func begin(_ mark: UInt8) {
        self.comma()
        self.bytes.append(mark)
        self.needsComma = false
    }

    private mutating func end(_ mark: UInt8) {
        self.bytes.append(mark)
        self.needsComma = true
    }

    private mutating func comma() {
        if self.needsComma { self.bytes.append(UInt8(ascii: ",")) }
        self.needsComma = true
    }

    /// A name of ours, in which nothing is to be escaped.
    package mutating func key(_ name: String) {
        self.comma()
        self.bytes.append(UInt8(ascii: "\""))
        self.bytes.append(contentsOf: name.utf8)
        self.bytes.append(contentsOf: Self.behindKey)
        self.needsComma = false
    }

    private static let behindKey = Array("\":".utf8)

    /// A name that somebody else chose.
    package mutating func foreignKey(_ name: String) {
        self.string(name)
        self.bytes.append(UInt8(ascii: ":"))
        self.needsComma = false
    }

    // MARK: Values

    package mutating func string(_ text: String) {
        self.comma()
        self.bytes.append(UInt8(ascii: "\""))
        var text = text
        text.withUTF8 { utf8 in
            guard !utf8.allSatisfy(Self.standsForItself) else { return self.bytes.append(contentsOf: utf8) }
            for byte in utf8 { self.append(escaped: byte) }
        }
        self.bytes.append(UInt8(ascii: "\""))
    }

    private static func standsForItself(_ byte: UInt8) -> Bool {
        byte >= 0x20 && byte != 0x22 && byte != 0x5C && byte != 0x7F
    }

    private mutating func append(escaped byte: UInt8) {
        switch byte {
        case 0x22, 0x5C:
            self.bytes.append(0x5C)
            self.bytes.append(byte)
        case 0x0A: self.bytes.append(contentsOf: "\\n".utf8)
        case 0x0D: self.bytes.append(contentsOf: "\\r".utf8)
        case 0x09: self.bytes.append(contentsOf: "\\t".utf8)
        case 0..<0x20, 0x7F:
            let digits = Array("0123456789abcdef".utf8)
            self.bytes.append(contentsOf: "\\u00".utf8)
            self.bytes.append(digits[Int(byte >> 4)])
            self.bytes.append(digits[Int(byte & 15)])
        default: self.bytes.append(byte)
        }
    }

    package mutating func number(_ value: some BinaryInteger) {
        self.comma()
        // Most are counters.
        guard let small = UInt64(exactly: value) else { return self.bytes.append(contentsOf: "\(value)".utf8) }
        self.digits(small)
    }

    private mutating func digits(_ value: UInt64) {
        var unit: UInt64 = 1
        while value / unit > 9 { unit *= 10 }
        while unit > 0 {
            self.bytes.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: value / unit % 10))
            unit /= 10
        }
    }

    /// With three digits behind the point at most.
    package mutating func milliseconds(_ duration: Duration) {
        self.comma()
        let microseconds = duration.wholeMicroseconds
        if microseconds < 0 { self.bytes.append(UInt8(ascii: "-")) }
        let (whole, rest) = microseconds.magnitude.quotientAndRemainder(dividingBy: 1000)
        self.digits(whole)
        guard rest > 0 else { return }
        self.bytes.append(UInt8(ascii: "."))
        if rest < 100 { self.bytes.append(UInt8(ascii: "0")) }
        if rest < 10 { self.bytes.append(UInt8(ascii: "0")) }
        self.digits(rest)
    }

    /// Finite ones only: others are written as 0.
    package mutating func number(_ value: Double) {
        self.comma()
        self.bytes.append(contentsOf: (value.isFinite ? "\(value)" : "0").utf8)
    }

    package mutating func boolean(_ value: Bool) {
        self.comma()
        self.bytes.append(contentsOf: (value ? "true" : "false").utf8)
    }

    /// RFC 3339 in UTC with milliseconds.
    /// - Parameter milliseconds: since 1970-01-01T00:00:00Z.
    package mutating func time(_ milliseconds: Int64) {
        self.comma()
        self.bytes.append(UInt8(ascii: "\""))
        WallClock.write(milliseconds: milliseconds, to: &self.bytes)
        self.bytes.append(UInt8(ascii: "\""))
    }

    // MARK: Members

    package mutating func member(_ name: String, time milliseconds: Int64) {
        self.key(name)
        self.time(milliseconds)
    }

    package mutating func member(_ name: String, _ text: String?) {
        guard let text else { return }
        self.key(name)
        self.string(text)
    }

    package mutating func member(_ name: String, _ value: (some BinaryInteger)?) {
        guard let value else { return }
        self.key(name)
        self.number(value)
    }

    package mutating func member(_ name: String, _ duration: Duration?) {
        guard let duration else { return }
        self.key(name)
        self.milliseconds(duration)
    }

    package mutating func member(_ name: String, _ value: Bool?) {
        guard let value else { return }
        self.key(name)
        self.boolean(value)
    }

    /// What is JSON already.
    package mutating func member(_ name: String, json: [UInt8]?) {
        guard let json else { return }
        self.key(name)
        self.bytes.append(contentsOf: json)
        self.needsComma = true
    }
}

extension Duration {
    /// Held to what `Int64` takes: about ±292 000 years.
    package var wholeMicroseconds: Int64 {
        let (seconds, attoseconds) = self.components
        let (scaled, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000)
        guard !overflow else { return seconds < 0 ? .min : .max }
        return scaled &+ attoseconds / 1_000_000_000_000
    }

    package init?(milliseconds: Double) {
        guard milliseconds.isFinite, abs(milliseconds) < 1e15 else { return nil }
        self = .microseconds(Int64((milliseconds * 1000).rounded()))
    }
}
