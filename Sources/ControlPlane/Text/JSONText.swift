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

    package mutating func key(_ name: String) {
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
            for byte in utf8 { self.append(escaped: byte) }
        }
        self.bytes.append(UInt8(ascii: "\""))
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
        self.bytes.append(contentsOf: String(value).utf8)
    }

    /// With three digits behind the point at most.
    package mutating func milliseconds(_ duration: Duration) {
        self.comma()
        let microseconds = duration.wholeMicroseconds
        if microseconds < 0 { self.bytes.append(UInt8(ascii: "-")) }
        let (whole, rest) = microseconds.magnitude.quotientAndRemainder(dividingBy: 1000)
        self.bytes.append(contentsOf: String(whole).utf8)
        guard rest > 0 else { return }
        let digits = String(rest)
        self.bytes.append(UInt8(ascii: "."))
        self.bytes.append(contentsOf: repeatElement(0x30, count: 3 - digits.utf8.count))
        self.bytes.append(contentsOf: digits.utf8)
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

    // MARK: Members

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
