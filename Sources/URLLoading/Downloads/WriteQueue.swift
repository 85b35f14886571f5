import ByteKernels
import DequeModule

/// Bytes that are to be written, in blocks of one size that are used again: however much passes through, no more memory
/// is taken than was once needed at a time.
package struct WriteQueue {
    /// Bytes in a block.
    package static let blockSize = 256 << 10
    /// Empty blocks that are kept.
    private static let spareLimit = 8

    /// None is empty, and all but the last are full.
    private var blocks: Deque<[UInt8]> = []
    private var spare: [[UInt8]] = []
    /// Bytes in all.
    package private(set) var count = 0

    package init() {}

    package mutating func append(_ bytes: RawSpan) {
        self.count += bytes.byteCount
        var taken = 0
        while taken < bytes.byteCount {
            let last = self.blocks.count - 1
            let room = last < 0 ? 0 : Self.blockSize - self.blocks[last].count
            guard room > 0 else {
                self.blocks.append(self.emptyBlock(for: bytes.byteCount - taken))
                continue
            }
            let count = min(room, bytes.byteCount - taken)
            self.blocks[last].append(bytes.extracting(taken..<(taken + count)))
            taken += count
        }
    }

    /// - Parameter count: bytes that are there for it; a small content needs no whole block.
    private mutating func emptyBlock(for count: Int) -> [UInt8] {
        if let block = self.spare.popLast() { return block }
        var block: [UInt8] = []
        block.reserveCapacity(self.blocks.isEmpty ? min(count, Self.blockSize) : Self.blockSize)
        return block
    }

    /// Takes back a block that was written, and gives the next; an empty one where there is none.
    package mutating func exchange(_ block: inout [UInt8]) {
        if block.capacity > 0, self.spare.count < Self.spareLimit {
            block.removeAll(keepingCapacity: true)
            self.spare.append(block)
        }
        block = self.blocks.popFirst() ?? []
        self.count -= block.count
    }
}
