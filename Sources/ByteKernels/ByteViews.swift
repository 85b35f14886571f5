// Conversions between owned bytes (`[UInt8]`) and views of them; other modules need no pointers.

extension [UInt8] {
    /// Calls `body` with a view of all bytes.
    @inlinable
    @discardableResult
    package func withRawSpan<R>(_ body: (RawSpan) -> R) -> R {
        unsafe body(self.span.bytes)
    }

    /// Calls `body` with a mutable view of all bytes.
    @inlinable
    @discardableResult
    package mutating func withMutableRawSpan<R>(_ body: (inout MutableRawSpan) -> R) -> R {
        unsafe self.withUnsafeMutableBytes { buffer in
            var span = unsafe MutableRawSpan(_unsafeBytes: buffer)
            return body(&span)
        }
    }

    @inlinable
    package mutating func append(_ bytes: RawSpan) {
        unsafe bytes.withUnsafeBytes { unsafe self.append(contentsOf: $0) }
    }

    @inlinable
    package init(_ bytes: RawSpan) {
        self = unsafe bytes.withUnsafeBytes { unsafe Array($0) }
    }

    /// Copies `count` bytes from `source`, which the caller guarantees to be readable.
    package init(copying source: PointerBytes.Source, count: Int) {
        self = unsafe Array(UnsafeBufferPointer(start: source, count: Swift.max(0, count)))
    }
}

extension RangeReplaceableCollection<UInt8> {
    /// Appends a copy of `bytes`, in one piece for contiguous collections.
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

    /// The big-endian integer at `offset`; traps outside `0...(byteCount - 4)`.
    @inlinable
    package subscript(bigEndianWord offset: Int) -> UInt32 {
        UInt32(bigEndian: self.unaligned(offset, as: UInt32.self))
    }

    /// The integer at `offset` in memory order; traps if it is out of bounds.
    @inlinable
    package func unaligned<Value: FixedWidthInteger & BitwiseCopyable>(_ offset: Int, as type: Value.Type) -> Value {
        precondition(offset >= 0 && offset <= self.byteCount - MemoryLayout<Value>.size)
        return unsafe self.unsafeLoadUnaligned(fromUncheckedByteOffset: offset, as: type)
    }

    /// Copies all bytes to `target`, where the caller guarantees enough room.
    package func copy(to target: PointerBytes.Target) {
        unsafe self.withUnsafeBytes { bytes in
            guard let source = bytes.baseAddress else { return }
            unsafe UnsafeMutableRawPointer(target).copyMemory(from: source, byteCount: bytes.count)
        }
    }
}

extension MutableRawSpan {
    /// Copies `source` to `offset`; both ranges are checked.
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

extension String {
    /// Decodes text of unknown encoding: as UTF-8 if that is valid, else as ISO-8859-1, in which every byte is a
    /// character.
    package init(tolerant bytes: RawSpan) {
        self = unsafe bytes.withUnsafeBytes { buffer in
            if unsafe buffer.isASCII {
                return unsafe String(unsafeUninitializedCapacity: buffer.count) { unsafe Self.fill($0, from: buffer) }
            }
            if let text = unsafe String(validating: buffer, as: UTF8.self) { return text }
            return unsafe String(String.UnicodeScalarView(buffer.lazy.map { Unicode.Scalar($0) }))
        }
    }

    /// Decodes UTF-8; invalid sequences become U+FFFD.
    package init(repairing bytes: RawSpan) {
        self = unsafe bytes.withUnsafeBytes { unsafe String(decoding: $0, as: UTF8.self) }
    }

    private static func fill(_ text: UnsafeMutableBufferPointer<UInt8>, from bytes: UnsafeRawBufferPointer) -> Int {
        unsafe UnsafeMutableRawBufferPointer(text).copyMemory(from: bytes)
        return bytes.count
    }
}

extension UnsafeRawBufferPointer {
    /// Whether no byte is above 0x7F. Inspects eight bytes at a time.
    fileprivate var isASCII: Bool {
        let highBits: UInt64 = 0x8080_8080_8080_8080
        var offset = 0
        var union: UInt64 = 0
        while self.count - offset >= 8 {
            union |= unsafe self.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
            offset += 8
        }
        while offset < self.count {
            unsafe union |= UInt64(self[offset])
            offset += 1
        }
        return union & highBits == 0
    }
}

/// Pointer types of Foundation's stream APIs. Overriding methods use these names and copy with the functions above.
package enum PointerBytes {
    package typealias Source = UnsafePointer<UInt8>
    package typealias Target = UnsafeMutablePointer<UInt8>
    package typealias TargetSlot = UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>
    package typealias CountSlot = UnsafeMutablePointer<Int>
}

/// Up to eight bytes that precede others, as a frame header precedes its payload; held in a register.
package struct LeadingBytes: Sendable, Hashable {
    /// In little-endian order; bits above `count` bytes are unused.
    package let bits: UInt64
    /// 0 to 8.
    package let count: Int

    @inlinable
    package init(_ bits: UInt64, count: Int) {
        self.bits = bits
        self.count = min(8, max(0, count))
    }

    /// The byte at `index`.
    @inlinable
    package subscript(index: Int) -> UInt8 {
        UInt8(truncatingIfNeeded: self.bits &>> UInt64(8 &* (index & 7)))
    }

    /// Writes these bytes to the front of `target`, followed by `bytes`; traps if they do not fit.
    /// - Returns: the number of bytes written.
    package func write(before bytes: RawSpan, into target: inout MutableRawSpan) -> Int {
        for index in 0..<self.count {
            target.storeBytes(of: self[index], toByteOffset: index, as: UInt8.self)
        }
        target.copy(bytes, at: self.count)
        return self.count + bytes.byteCount
    }
}

/// Appends text to capacity reserved beforehand, without a uniqueness check for each byte. Traps if the capacity is too
/// small, as `append` of one byte does.
extension OutputSpan<UInt8> {
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

    /// Most digits that `append(decimal:)` writes.
    @inlinable
    package static var decimalRoom: Int { 20 }

    /// Appends a number in decimal digits without leading zeros.
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
