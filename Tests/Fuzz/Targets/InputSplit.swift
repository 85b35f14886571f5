/// How an input arrives in pieces. Which pieces, the input itself decides, so that a file alone replays a finding.
package struct InputSplit: CustomStringConvertible, Sendable {
    package let description: String
    /// Where each piece ends, in ascending order; the last is the end of the input. Empty pieces occur.
    package let ends: [Int]

    package static func whole(_ bytes: [UInt8]) -> InputSplit {
        InputSplit(description: "whole", ends: [bytes.count])
    }

    /// Byte by byte, in two, in short pieces, and in long ones.
    package static func cuts(of bytes: [UInt8]) -> [InputSplit] {
        var state: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in bytes { state = (state ^ UInt64(byte)) &* 0x100_0000_01B3 }
        let middle = bytes.isEmpty ? 0 : Int(state % UInt64(bytes.count))
        return [
            InputSplit(description: "byte by byte", ends: Array(0...bytes.count)),
            InputSplit(description: "in two at \(middle)", ends: [middle, bytes.count]),
            InputSplit(description: "in short pieces", ends: self.ends(of: bytes.count, longest: 5, &state)),
            InputSplit(description: "in long pieces", ends: self.ends(of: bytes.count, longest: 400, &state)),
        ]
    }

    private static func ends(of count: Int, longest: UInt64, _ state: inout UInt64) -> [Int] {
        var ends: [Int] = []
        var end = 0
        while end < count {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            end = min(count, end + Int((state >> 33) % (longest + 1)))
            ends.append(end)
        }
        return ends.isEmpty ? [0] : ends
    }

    package func pieces(of bytes: [UInt8]) -> [[UInt8]] {
        zip([0] + self.ends, self.ends).map { Array(bytes[$0..<$1]) }
    }

    /// Observes `bytes` whole and in every split.
    /// - Returns: the observations of the whole.
    /// - Throws: if a split gives other observations.
    @discardableResult
    package static func expectSame<Seen: Equatable>(
        _ bytes: [UInt8], _ subject: String, by observe: (InputSplit) throws(InvariantViolation) -> Seen
    ) throws(InvariantViolation) -> Seen {
        let whole = try observe(.whole(bytes))
        for cut in self.cuts(of: bytes) {
            let seen = try observe(cut)
            try InvariantViolation.expect(seen == whole, "\(subject), \(cut): \(seen), but whole: \(whole)")
        }
        return whole
    }
}
