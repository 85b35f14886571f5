import ByteKernels

/// Values of JSON (RFC 8259) where there is room for them.
extension OutputSpan<UInt8> {
    /// What `append(quoted:)` takes.
    static func room(quoted utf8: Span<UInt8>) -> Int {
        var room = utf8.count + 2
        for index in utf8.indices where Self.isEscaped(utf8[index]) { room += 5 }
        return room
    }

    /// - Parameter room: what `room(quoted:)` says of it.
    mutating func append(quoted utf8: Span<UInt8>, room: Int) {
        self.append(UInt8(ascii: "\""))
        if room == utf8.count + 2 {
            self.append(copying: utf8)
        } else {
            for index in utf8.indices {
                let byte = utf8[index]
                if Self.isEscaped(byte) { self.append(escaped: byte) } else { self.append(byte) }
            }
        }
        self.append(UInt8(ascii: "\""))
    }

    private static func isEscaped(_ byte: UInt8) -> Bool {
        byte < 0x20 || byte == 0x22 || byte == 0x5C || byte == 0x7F
    }

    private mutating func append(escaped byte: UInt8) {
        switch byte {
        case 0x22, 0x5C:
            self.append(0x5C)
            self.append(byte)
        case 0x0A: self.append(literal: "\\n")
        case 0x0D: self.append(literal: "\\r")
        case 0x09: self.append(literal: "\\t")
        default:
            self.append(literal: "\\u00")
            self.append(hexadecimal: byte >> 4)
            self.append(hexadecimal: byte & 15)
        }
    }

    private mutating func append(hexadecimal digit: UInt8) {
        self.append(digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + (digit - 10))
    }

    /// What `append(integer:)` takes.
    static var integerRoom: Int { Self.decimalRoom + 1 }

    /// - Parameter value: of at most 64 bits.
    mutating func append(integer value: some BinaryInteger) {
        if value < 0 { self.append(UInt8(ascii: "-")) }
        self.append(decimal: UInt64(truncatingIfNeeded: value.magnitude))
    }

    /// What `append(microseconds:)` takes.
    static var millisecondsRoom: Int { Self.integerRoom + 4 }

    /// As milliseconds, with three digits behind the point where there are any.
    mutating func append(microseconds: Int64) {
        if microseconds < 0 { self.append(UInt8(ascii: "-")) }
        let (whole, rest) = microseconds.magnitude.quotientAndRemainder(dividingBy: 1000)
        self.append(decimal: whole)
        guard rest > 0 else { return }
        self.append(UInt8(ascii: "."))
        self.append(decimal: rest / 100)
        self.append(twoDigits: rest % 100)
    }
}
