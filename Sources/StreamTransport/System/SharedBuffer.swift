import ByteKernels

/// Memory that a loop lends for the length of a call: to receive into, and to collect a turn's writes.
@safe
package final class SharedBuffer {
    package let capacity: Int
    private let bytes: UnsafeMutableRawBufferPointer

    package init(capacity: Int) {
        self.capacity = capacity
        unsafe self.bytes = .allocate(byteCount: capacity, alignment: 64)
        unsafe self.bytes.initializeMemory(as: UInt8.self, repeating: 0)
    }

    deinit {
        unsafe self.bytes.deallocate()
    }

    /// Lends the bytes of `range` for changing; the range is checked.
    func lend<R>(_ range: Range<Int>, _ body: (inout MutableRawSpan) -> R) -> R {
        precondition(range.lowerBound >= 0 && range.upperBound <= self.capacity)
        var span = unsafe MutableRawSpan(_unsafeBytes: UnsafeMutableRawBufferPointer(rebasing: self.bytes[range]))
        return body(&span)
    }

    /// Copies `head` followed by `bytes` to `start`; checks that they fit with eight bytes to spare.
    /// - Returns: number of bytes copied.
    func put(_ head: LeadingBytes, _ bytes: RawSpan, at start: Int) -> Int {
        precondition(start >= 0 && head.count + bytes.byteCount + 8 <= self.capacity - start)
        guard let place = unsafe self.bytes.baseAddress.map({ unsafe $0 + start }) else { return 0 }
        unsafe place.storeBytes(of: head.bits.littleEndian, as: UInt64.self)
        unsafe bytes.withUnsafeBytes { source in
            guard let from = source.baseAddress else { return }
            unsafe (place + head.count).copyMemory(from: from, byteCount: source.count)
        }
        return head.count + bytes.byteCount
    }

    /// Lends the bytes of `range` for reading; the range is checked.
    func read<R>(_ range: Range<Int>, _ body: (RawSpan) -> R) -> R {
        precondition(range.lowerBound >= 0 && range.upperBound <= self.capacity)
        return unsafe body(RawSpan(_unsafeBytes: UnsafeRawBufferPointer(rebasing: self.bytes[range])))
    }
}
