/// The crossings between owned bytes (`[UInt8]`) and views of them, kept in this room so that no other module spells
/// out a pointer.
extension [UInt8] {
    /// Lends all bytes for reading.
    @inlinable
    @discardableResult
    package func withRawSpan<R>(_ body: (RawSpan) -> R) -> R {
        unsafe body(self.span.bytes)
    }

    /// Lends all bytes for changing in place.
    @inlinable
    @discardableResult
    package mutating func withMutableRawSpan<R>(_ body: (inout MutableRawSpan) -> R) -> R {
        unsafe self.withUnsafeMutableBytes { buffer in
            var span = unsafe MutableRawSpan(_unsafeBytes: buffer)
            return body(&span)
        }
    }

    /// Appends a copy of `bytes`.
    @inlinable
    package mutating func append(_ bytes: RawSpan) {
        unsafe bytes.withUnsafeBytes { unsafe self.append(contentsOf: $0) }
    }

    /// An owned copy of `bytes`.
    @inlinable
    package init(_ bytes: RawSpan) {
        self = unsafe bytes.withUnsafeBytes { unsafe Array($0) }
    }
}

extension RangeReplaceableCollection<UInt8> {
    /// Appends a copy of `bytes`; in one piece for collections that keep their bytes together.
    @inlinable
    package mutating func append(copying bytes: RawSpan) {
        unsafe bytes.withUnsafeBytes { unsafe self.append(contentsOf: $0) }
    }
}

extension RawSpan {
    /// The byte at `offset`; traps outside `0..<byteCount`, as an array does.
    @inlinable
    package subscript(byte offset: Int) -> UInt8 {
        precondition(offset >= 0 && offset < self.byteCount)
        return unsafe self.unsafeLoad(fromUncheckedByteOffset: offset, as: UInt8.self)
    }
}

extension RawSpan {
    /// The four bytes from `offset` on, the first the most significant; traps outside `0...(byteCount - 4)`.
    @inlinable
    package subscript(bigEndianWord offset: Int) -> UInt32 {
        precondition(offset >= 0 && self.byteCount - offset >= 4)
        return unsafe UInt32(bigEndian: self.unsafeLoadUnaligned(fromUncheckedByteOffset: offset, as: UInt32.self))
    }
}

extension MutableRawSpan {
    /// Copies `source` to `offset` on; both ranges are checked.
    @inlinable
    package mutating func copy(_ source: RawSpan, at offset: Int) {
        precondition(offset >= 0 && source.byteCount <= self.byteCount - offset)
        guard source.byteCount > 0 else { return }
        unsafe self.withUnsafeMutableBytes { target in
            unsafe source.withUnsafeBytes { bytes in
                unsafe UnsafeMutableRawBufferPointer(rebasing: target[offset...]).copyMemory(from: bytes)
            }
        }
    }
}

extension RawSpan {
    /// The integer whose bytes begin at `offset`, in memory order; traps where they are not all there.
    @inlinable
    package func unaligned<Value: FixedWidthInteger & BitwiseCopyable>(_ offset: Int, as type: Value.Type) -> Value {
        precondition(offset >= 0 && offset <= self.byteCount - MemoryLayout<Value>.size)
        return unsafe self.unsafeLoadUnaligned(fromUncheckedByteOffset: offset, as: type)
    }
}

extension String {
    /// The text that `bytes` stand for where nobody says how they are encoded: UTF-8 if they are valid as such, else
    /// ISO-8859-1, in which every byte is a character. Never fails and never replaces anything.
    package init(tolerant bytes: RawSpan) {
        self = unsafe bytes.withUnsafeBytes { buffer in
            if unsafe !buffer.contains(where: { $0 >= 0x80 }) {
                return unsafe String(unsafeUninitializedCapacity: buffer.count) { unsafe Self.fill($0, from: buffer) }
            }
            if let text = unsafe String(validating: buffer, as: UTF8.self) { return text }
            return unsafe String(String.UnicodeScalarView(buffer.lazy.map { Unicode.Scalar($0) }))
        }
    }

    private static func fill(_ text: UnsafeMutableBufferPointer<UInt8>, from bytes: UnsafeRawBufferPointer) -> Int {
        unsafe UnsafeMutableRawBufferPointer(text).copyMemory(from: bytes)
        return bytes.count
    }
}

/// Bytes in the memory of somebody who deals in pointers, as interfaces of Foundation do. Their overriders take them by
/// these names, and copy by what is below.
package enum PointerBytes {
    package typealias Source = UnsafePointer<UInt8>
    package typealias Target = UnsafeMutablePointer<UInt8>
    package typealias TargetSlot = UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>
    package typealias CountSlot = UnsafeMutablePointer<Int>
}

extension RawSpan {
    /// Copies all bytes to `target`, where the caller of the interface promised that much room.
    package func copy(to target: PointerBytes.Target) {
        unsafe self.withUnsafeBytes { bytes in
            guard let source = bytes.baseAddress else { return }
            unsafe UnsafeMutableRawPointer(target).copyMemory(from: source, byteCount: bytes.count)
        }
    }
}

extension [UInt8] {
    /// A copy of the `count` bytes that the caller of the interface promised to be at `source`.
    package init(copying source: PointerBytes.Source, count: Int) {
        self = unsafe Array(UnsafeBufferPointer(start: source, count: Swift.max(0, count)))
    }
}

/// Up to eight bytes that go before others, as a frame's head goes before its payload: held in a register, and written
/// with one store.
package struct LeadingBytes: Sendable, Hashable {
    /// The first byte is the lowest; what is above `count` bytes is nothing.
    package let bits: UInt64
    /// 0 to 8.
    package let count: Int

    @inlinable
    package init(_ bits: UInt64, count: Int) {
        self.bits = bits
        self.count = min(8, max(0, count))
    }

    /// The byte at `index`, which counts from the first one written.
    @inlinable
    package subscript(index: Int) -> UInt8 {
        UInt8(truncatingIfNeeded: self.bits &>> UInt64(8 &* (index & 7)))
    }

    /// Writes them to the front of `target`, and `bytes` behind them; traps where they do not fit.
    /// - Returns: the bytes written.
    package func write(before bytes: RawSpan, into target: inout MutableRawSpan) -> Int {
        for index in 0..<self.count {
            target.storeBytes(of: self[index], toByteOffset: index, as: UInt8.self)
        }
        target.copy(bytes, at: self.count)
        return self.count + bytes.byteCount
    }
}

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
