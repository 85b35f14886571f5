/// Bytes in the memory of somebody who deals in pointers, as interfaces of Foundation do. Their overriders take them by
/// these names, and copy by what is below.
package enum ForeignBytes {
    package typealias Source = UnsafePointer<UInt8>
    package typealias Target = UnsafeMutablePointer<UInt8>
    package typealias TargetSlot = UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>
    package typealias CountSlot = UnsafeMutablePointer<Int>
}

extension RawSpan {
    /// Copies all bytes to `target`, where the caller of the interface promised that much room.
    package func copy(to target: ForeignBytes.Target) {
        unsafe self.withUnsafeBytes { bytes in
            guard let source = bytes.baseAddress else { return }
            unsafe UnsafeMutableRawPointer(target).copyMemory(from: source, byteCount: bytes.count)
        }
    }
}

extension [UInt8] {
    /// A copy of the `count` bytes that the caller of the interface promised to be at `source`.
    package init(copying source: ForeignBytes.Source, count: Int) {
        self = unsafe Array(UnsafeBufferPointer(start: source, count: Swift.max(0, count)))
    }
}
