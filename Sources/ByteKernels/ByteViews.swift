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
