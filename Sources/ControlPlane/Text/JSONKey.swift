import ByteKernels

/// The name of a member, ready to be copied: nothing that is counted by reference, as a list writes some forty for each of
/// thousands of connections.
package struct JSONKey: Sendable, ExpressibleByStringLiteral {
    /// The most bytes of a name.
    package static let lengthLimit = 28

    /// `,"name":`, and zeros behind it.
    private var bytes = InlineArray<32, UInt8>(repeating: 0)
    private var count = 0

    /// - Parameter name: one of ours, in which nothing is to be escaped, of at most `lengthLimit` bytes.
    package init(_ name: String) {
        assert(name.utf8.count <= Self.lengthLimit, "\(name) is too long for a key")
        self.append(UInt8(ascii: ","))
        self.append(UInt8(ascii: "\""))
        for byte in name.utf8.prefix(Self.lengthLimit) { self.append(byte) }
        self.append(UInt8(ascii: "\""))
        self.append(UInt8(ascii: ":"))
    }

    package init(stringLiteral value: String) {
        self.init(value)
    }

    private mutating func append(_ byte: UInt8) {
        self.bytes[self.count] = byte
        self.count += 1
    }

    /// What `write(behindComma:to:)` takes.
    static var room: Int { Self.lengthLimit + 4 }

    /// - Parameter comma: whether it is written: it does not stand before the first member of an object.
    @inline(__always)
    func write(behindComma comma: Bool, to output: inout OutputSpan<UInt8>) {
        output.append(copying: self.bytes.span.extracting((comma ? 0 : 1)..<self.count))
    }
}
