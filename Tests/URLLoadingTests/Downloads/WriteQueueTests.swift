import Testing
import URLLoading

@Suite("Queued writes to a file")
struct WriteQueueTests {
    private func sample(_ count: Int) -> [UInt8] { (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 9) } }

    @Test(arguments: [1, 999, 65_536, 262_144, 262_145, 1_000_000])
    func queuedBytesComeOutInOrderAndInBlocks(_ size: Int) {
        var queue = WriteQueue()
        let all = self.sample(1_300_003)
        for start in stride(from: 0, to: all.count, by: size) {
            queue.append(Array(all[start..<min(all.count, start + size)]).span.bytes)
        }
        #expect(queue.count == all.count)
        var (written, block): ([UInt8], [UInt8]) = ([], [])
        repeat {
            queue.exchange(&block)
            #expect(block.count == WriteQueue.blockSize || queue.count == 0)
            written += block
        } while !block.isEmpty
        #expect(written == all && queue.count == 0)
    }

    @Test func queueTakesNoMoreMemoryThanOnceNeeded() {
        var queue = WriteQueue()
        let piece = self.sample(WriteQueue.blockSize)
        var block: [UInt8] = []
        var places: Set<UInt> = []
        for _ in 0..<100 {
            queue.append(piece.span.bytes)
            queue.append(piece.span.bytes)
            for _ in 0..<2 {
                queue.exchange(&block)
                #expect(block == piece)
                places.insert(block.withUnsafeBytes { UInt(bitPattern: $0.baseAddress) })
            }
        }
        #expect(places.count <= 4)
    }

    @Test func emptyQueueGivesNothing() {
        var queue = WriteQueue()
        var block: [UInt8] = [1, 2, 3]
        queue.exchange(&block)
        #expect(block.isEmpty && queue.count == 0)
    }
}
