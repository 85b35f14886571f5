import ByteKernels
import Deflate

/// What all compressing connections of one thread share: inflaters and deflaters between uses, and scratch that none
/// of them keeps anything in.
package final class DeflateShare {
    /// Bytes inflated by one event at most.
    package static let outputCapacity = 64 << 10

    package let pool: DeflatePool
    var output = [UInt8](repeating: 0, count: DeflateShare.outputCapacity)
    /// Compressed bytes of the frame that is being written.
    var compressed: [UInt8] = []

    /// Lends what was compressed last.
    package func withCompressed<R>(_ body: (RawSpan) -> R) -> R {
        self.compressed.withRawSpan(body)
    }

    /// Lends what the last event inflated.
    package func withInflated<R>(_ count: Int, _ body: (RawSpan) -> R) -> R {
        self.output.withRawSpan { body($0.extracting(0..<min(count, $0.byteCount))) }
    }

    package init() {
        self.pool = DeflatePool()
    }
}
