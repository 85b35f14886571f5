/// Memory that a loop lends out for the length of a call: to receive into, and to gather what a turn writes.
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

    /// Lends the bytes of `range` for reading; the range is checked.
    func read<R>(_ range: Range<Int>, _ body: (RawSpan) -> R) -> R {
        precondition(range.lowerBound >= 0 && range.upperBound <= self.capacity)
        return unsafe body(RawSpan(_unsafeBytes: UnsafeRawBufferPointer(rebasing: self.bytes[range])))
    }
}
