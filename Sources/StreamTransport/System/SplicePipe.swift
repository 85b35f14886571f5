import CLinux

/// The pipe through which a loop's bulk goes from socket to socket without being copied. Empty between two calls but for
/// what a target did not take, which is fetched before the next. Made when first needed, one for a loop.
@safe
struct SplicePipe: ~Copyable {
    private static let capacity = 1 << 20

    private let writeEnd: Int32
    private let readEnd: Int32
    private var byteCount = 0

    /// `nil` where there are no descriptors left, or SIGPIPE is not ignored.
    init?(_ reserve: DescriptorReserve) {
        var ends: (Int32, Int32) = (-1, -1)
        let result = unsafe withUnsafeMutableBytes(of: &ends) { bytes in
            unsafe sluice_open_pipe(bytes.assumingMemoryBound(to: Int32.self).baseAddress, Int32(Self.capacity))
        }
        guard result == 0 else { return nil }
        guard reserve.admitsInner(max(ends.0, ends.1)) else {
            _ = CLinux.close(ends.0)
            _ = CLinux.close(ends.1)
            return nil
        }
        (self.readEnd, self.writeEnd) = ends
    }

    deinit {
        _ = CLinux.close(self.writeEnd)
        _ = CLinux.close(self.readEnd)
    }

    /// - Returns: `nil` while something is still held.
    mutating func pass(_ source: Descriptor, to target: Descriptor, atMost count: Int) -> SplicedBytes? {
        guard self.byteCount == 0 else { return nil }
        let received = Self.splice(source.number, self.writeEnd, count)
        guard received > 0 else { return Self.isImpossible(received) ? nil : SplicedBytes(received: received, sent: 0) }
        let sent = Self.splice(self.readEnd, target.number, received)
        self.byteCount = received - max(0, sent)
        return SplicedBytes(received: received, sent: Self.isImpossible(sent) ? 0 : sent)
    }

    /// - Returns: the bytes moved, or a negated error number.
    private static func splice(_ from: Int32, _ to: Int32, _ count: Int) -> Int {
        let moved = sluice_splice(from, to, count)
        return moved >= 0 ? moved : -Int(sluice_errno())
    }

    /// A kind of descriptor that cannot be spliced, or a filter of system calls: reads and writes still do.
    private static func isImpossible(_ result: Int) -> Bool {
        switch -result {
        case Int(EINVAL), Int(ENOSYS), Int(EOPNOTSUPP), Int(EPERM): true
        default: false
        }
    }

    /// Copies as many of the spliced bytes as fit.
    /// - Returns: number of bytes; 0 when the pipe is empty.
    mutating func take(into buffer: inout MutableRawSpan) -> Int {
        guard self.byteCount > 0 else { return 0 }
        let count = unsafe buffer.withUnsafeMutableBytes { bytes in
            unsafe read(self.readEnd, bytes.baseAddress, min(bytes.count, self.byteCount))
        }
        // An own pipe that holds bytes gives them.
        guard count > 0 else { return 0 }
        self.byteCount -= count
        return count
    }
}
