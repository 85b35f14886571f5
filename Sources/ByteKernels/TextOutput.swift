/// Text written into room that was reserved for all of it at once, so that no byte costs a look at its owner. Each of
/// these traps where the room is less than what is appended, as `append` of one byte does.
extension OutputSpan<UInt8> {
    /// Appends a copy of `bytes`.
    @inlinable @inline(__always)
    package mutating func append(copying bytes: Span<UInt8>) {
        unsafe bytes.withUnsafeBufferPointer { unsafe self.append(copying: $0) }
    }

    /// Appends the UTF-8 of a literal.
    @inlinable
    package mutating func append(literal text: StaticString) {
        text.withUTF8Buffer { unsafe self.append(copying: $0) }
    }

    @inlinable @inline(__always)
    mutating func append(copying bytes: UnsafeBufferPointer<UInt8>) {
        unsafe self.withUnsafeMutableBufferPointer { room, count in
            precondition(bytes.count <= room.count - count)
            let rest = unsafe UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(room)[count...])
            unsafe rest.copyMemory(from: UnsafeRawBufferPointer(bytes))
            count += bytes.count
        }
    }

    /// The most digits that `append(decimal:)` writes.
    @inlinable
    package static var decimalRoom: Int { 20 }

    /// Appends a number in decimal digits, without any in front that say nothing.
    @inlinable
    package mutating func append(decimal value: UInt64) {
        if value > 99 { self.append(decimal: value / 100) }
        if value > 9 { return self.append(twoDigits: value % 100) }
        self.append(UInt8(ascii: "0") &+ UInt8(truncatingIfNeeded: value))
    }

    /// - Parameter value: at most 99.
    @inlinable @inline(__always)
    package mutating func append(twoDigits value: UInt64) {
        self.append(UInt8(ascii: "0") &+ UInt8(truncatingIfNeeded: value / 10))
        self.append(UInt8(ascii: "0") &+ UInt8(truncatingIfNeeded: value % 10))
    }
}
