import FuzzTargets
import Testing

@Suite("Splits of an input")
struct InputSplitTests {
    @Test(arguments: [0, 1, 2, 7, 1000])
    func splitCarriesEveryByteInOrder(_ count: Int) {
        let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0) }
        for split in [InputSplit.whole(bytes)] + InputSplit.cuts(of: bytes) {
            #expect(split.pieces(of: bytes).flatMap(\.self) == bytes, "\(split)")
        }
    }

    @Test func dependenceOnTheSplitIsDetected() {
        #expect(throws: InvariantViolation.self) {
            try InputSplit.expectSame([1, 2, 3], "pieces") { split throws(InvariantViolation) in split.ends.count }
        }
        // A decoder that forgets an incomplete item at the end of a piece.
        #expect(throws: InvariantViolation.self) {
            try InputSplit.expectSame([1, 2, 3], "pairs") { split throws(InvariantViolation) in
                split.pieces(of: [1, 2, 3]).reduce(0) { $0 + $1.count / 2 }
            }
        }
    }

    @Test func sameInputHasTheSameSplits() {
        let bytes = [UInt8](repeating: 7, count: 300)
        #expect(InputSplit.cuts(of: bytes).map(\.ends) == InputSplit.cuts(of: bytes).map(\.ends))
        #expect(Set(InputSplit.cuts(of: bytes).map(\.ends)).count == 4)
    }
}
