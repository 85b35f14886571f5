import CLinux

/// The pipe through which a loop's bulk goes from socket to socket without being copied. Empty between two calls but for
/// what a target did not take, which is fetched before the next. Made when first needed, one for a loop.
@safe
struct Passage: ~Copyable {
    private static let capacity = 1 << 20

    private let entrance: Int32
    private let exit: Int32
    private var held = 0

    /// `nil` where there are no descriptors left, or SIGPIPE is not ignored.
    init?() {
        var ends: (Int32, Int32) = (-1, -1)
        let result = unsafe withUnsafeMutableBytes(of: &ends) { bytes in
            unsafe sluice_open_pipe(bytes.assumingMemoryBound(to: Int32.self).baseAddress, Int32(Self.capacity))
        }
        guard result == 0 else { return nil }
        (self.exit, self.entrance) = ends
    }

    deinit {
        _ = CLinux.close(self.entrance)
        _ = CLinux.close(self.exit)
    }

    /// - Returns: `nil` while something is still held.
    mutating func pass(_ source: Descriptor, to target: Descriptor, atMost count: Int) -> PassedBytes? {
        guard self.held == 0 else { return nil }
        let received = sluice_splice(source.number, self.entrance, count)
        guard received > 0 else { return PassedBytes(received: received == 0 ? 0 : -Int(sluice_errno()), sent: 0) }
        let sent = sluice_splice(self.exit, target.number, received)
        let outcome = sent >= 0 ? sent : -Int(sluice_errno())
        self.held = received - max(0, sent)
        return PassedBytes(received: received, sent: outcome)
    }

    /// Fetches of what is held as much as fits.
    /// - Returns: the bytes; 0 when nothing is held any more.
    mutating func take(into buffer: inout MutableRawSpan) -> Int {
        guard self.held > 0 else { return 0 }
        let count = unsafe buffer.withUnsafeMutableBytes { bytes in
            unsafe read(self.exit, bytes.baseAddress, min(bytes.count, self.held))
        }
        // An own pipe that holds bytes gives them.
        guard count > 0 else { return 0 }
        self.held -= count
        return count
    }
}
