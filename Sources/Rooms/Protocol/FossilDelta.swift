/// Differences between two contents, as Fossil writes them: commands that copy ranges of the source and insert bytes.
///
/// Source: "Fossil Delta Format" and "Fossil Delta Encoding Algorithm" of fossil-scm.org.
package enum FossilDelta {
    /// Bytes of source and target, each, above which no delta is made.
    package static let sizeLimit = 1 << 20

    /// Time and memory are linear in the sizes of both.
    ///
    /// - Parameter keepsCharacters: for two texts of UTF-8, of which the delta is one, too: nothing begins or ends within
    ///   a character.
    /// - Returns: `nil` unless the delta is smaller than the target.
    package static func make(from source: [UInt8], to target: [UInt8], keepsCharacters: Bool) -> [UInt8]? {
        guard !source.isEmpty, !target.isEmpty, max(source.count, target.count) <= Self.sizeLimit else { return nil }
        var encoder = FossilDeltaEncoder(source: source, target: target, keepsCharacters: keepsCharacters)
        return encoder.encode()
    }

    /// Sum of the content's 32-bit words, the highest byte first, the last one filled up with zeros.
    static func checksum(_ content: [UInt8]) -> UInt32 {
        var sum: UInt32 = 0
        var shift: UInt32 = 24
        for byte in content {
            sum &+= UInt32(byte) << shift
            shift = shift == 0 ? 24 : shift - 8
        }
        return sum
    }

    private static let digits = Array("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz~".utf8)

    /// Appends a number in base 64, without leading zeros.
    fileprivate static func append(_ number: Int, to bytes: inout [UInt8]) {
        var shift = 6 * (Self.digitCount(number) - 1)
        while shift >= 0 {
            bytes.append(Self.digits[number >> shift & 63])
            shift -= 6
        }
    }

    fileprivate static func digitCount(_ number: Int) -> Int {
        var (count, rest) = (1, number >> 6)
        while rest > 0 { (count, rest) = (count + 1, rest >> 6) }
        return count
    }
}

/// Blocks of the source, found by their hashes.
private struct BlockIndex {
    /// Bytes of a block. Shorter matches are found at the beginning and the end of the contents alone.
    static let blockSize = 16
    /// Blocks of one hash that are compared, so that many equal ones do not cost more.
    private static let candidateLimit = 8
    private static let factor: UInt32 = 0x0100_0193
    /// `factor` to the power of `blockSize`, for the byte that leaves the window.
    private static let outgoing = (0..<Self.blockSize).reduce(1 as UInt32) { power, _ in power &* Self.factor }

    /// First block of each hash, and the next one after each block; -1 at the end.
    private var heads: [Int32]
    private var next: [Int32]

    init(_ source: [UInt8]) {
        let count = source.count / Self.blockSize
        var size = 16
        while size < count { size *= 2 }
        self.heads = Array(repeating: -1, count: size)
        self.next = Array(repeating: -1, count: count)
        // Backwards, so that the first of equal blocks is the first candidate.
        for block in (0..<count).reversed() {
            let slot = self.slot(Self.hash(source, at: block * Self.blockSize))
            self.next[block] = self.heads[slot]
            self.heads[slot] = Int32(block)
        }
    }

    private func slot(_ hash: UInt32) -> Int { Int((hash ^ hash >> 15) & UInt32(self.heads.count - 1)) }

    static func hash(_ bytes: [UInt8], at start: Int) -> UInt32 {
        var hash: UInt32 = 0
        for index in start..<(start + Self.blockSize) { hash = hash &* Self.factor &+ UInt32(bytes[index]) }
        return hash
    }

    /// The hash of the block one byte later.
    static func roll(_ hash: UInt32, out: UInt8, in incoming: UInt8) -> UInt32 {
        hash &* Self.factor &+ UInt32(incoming) &- UInt32(out) &* Self.outgoing
    }

    /// Calls `body` with the beginnings of the source's blocks that may be equal to one of this hash.
    func forEachCandidate(_ hash: UInt32, _ body: (Int) -> Void) {
        var block = self.heads[self.slot(hash)]
        var left = Self.candidateLimit
        while block >= 0, left > 0 {
            body(Int(block) * Self.blockSize)
            block = self.next[Int(block)]
            left -= 1
        }
    }
}

private struct FossilDeltaEncoder {
    /// Bytes of the target that are in the source.
    private struct Match {
        var source: Int
        var target: Int
        var count: Int
    }

    private let source: [UInt8]
    private let target: [UInt8]
    private let keepsCharacters: Bool
    private var output: [UInt8] = []
    /// The target up to here is written.
    private var written = 0

    init(source: [UInt8], target: [UInt8], keepsCharacters: Bool) {
        self.source = source
        self.target = target
        self.keepsCharacters = keepsCharacters
    }

    mutating func encode() -> [UInt8]? {
        FossilDelta.append(self.target.count, to: &self.output)
        self.output.append(0x0A)
        let shorter = min(self.source.count, self.target.count)
        let prefix = self.commonPrefix(upTo: shorter)
        let suffix = self.commonSuffix(upTo: shorter - prefix)
        self.copy(Match(source: 0, target: 0, count: prefix))
        let end = self.target.count - suffix
        if end - prefix >= BlockIndex.blockSize, self.source.count >= BlockIndex.blockSize {
            self.copyBlocks(in: prefix..<end)
        }
        self.copy(Match(source: self.source.count - suffix, target: end, count: suffix))
        self.insert(upTo: self.target.count)
        FossilDelta.append(Int(FossilDelta.checksum(self.target)), to: &self.output)
        self.output.append(UInt8(ascii: ";"))
        return self.output.count < self.target.count ? self.output : nil
    }

    private func commonPrefix(upTo limit: Int) -> Int {
        var count = 0
        while count < limit, self.source[count] == self.target[count] { count += 1 }
        return count
    }

    private func commonSuffix(upTo limit: Int) -> Int {
        let (sourceEnd, targetEnd) = (self.source.count - 1, self.target.count - 1)
        var count = 0
        while count < limit, self.source[sourceEnd - count] == self.target[targetEnd - count] { count += 1 }
        return count
    }

    /// Writes the parts of the target in `range` that contain a block of the source as copies.
    private mutating func copyBlocks(in range: Range<Int>) {
        let index = BlockIndex(self.source)
        let last = range.upperBound - BlockIndex.blockSize
        var start = range.lowerBound
        var hash = BlockIndex.hash(self.target, at: start)
        while true {
            var next = start + 1
            if let match = self.longestMatch(index, hash, at: start, end: range.upperBound) {
                self.copy(match)
                next = match.target + match.count
            }
            guard next <= last else { return }
            hash =
                next == start + 1
                ? BlockIndex.roll(hash, out: self.target[start], in: self.target[start + BlockIndex.blockSize])
                : BlockIndex.hash(self.target, at: next)
            start = next
        }
    }

    private func longestMatch(_ index: BlockIndex, _ hash: UInt32, at start: Int, end: Int) -> Match? {
        var longest: Match?
        index.forEachCandidate(hash) { block in
            var match = Match(source: block, target: start, count: 0)
            while match.source + match.count < self.source.count, start + match.count < end,
                self.source[match.source + match.count] == self.target[start + match.count]
            {
                match.count += 1
            }
            guard match.count >= BlockIndex.blockSize else { return }
            while match.source > 0, match.target > self.written,
                self.source[match.source - 1] == self.target[match.target - 1]
            {
                match = Match(source: match.source - 1, target: match.target - 1, count: match.count + 1)
            }
            if match.count > longest?.count ?? 0 { longest = match }
        }
        return longest
    }

    /// Writes a copy command, after an insert command for the bytes before it. Writes neither if inserting the match is shorter.
    private mutating func copy(_ match: Match) {
        let match = self.keepsCharacters ? self.wholeCharacters(of: match) : match
        let digits = FossilDelta.digitCount(match.count) + FossilDelta.digitCount(match.source)
        guard match.count > digits + 2 else { return }
        self.insert(upTo: match.target)
        FossilDelta.append(match.count, to: &self.output)
        self.output.append(UInt8(ascii: "@"))
        FossilDelta.append(match.source, to: &self.output)
        self.output.append(UInt8(ascii: ","))
        self.written = match.target + match.count
    }

    private func wholeCharacters(of match: Match) -> Match {
        var (start, end) = (match.target, match.target + match.count)
        while start < end, self.target[start] & 0xC0 == 0x80 { start += 1 }
        while end > start, end < self.target.count, self.target[end] & 0xC0 == 0x80 { end -= 1 }
        return Match(source: match.source + start - match.target, target: start, count: end - start)
    }

    private mutating func insert(upTo end: Int) {
        guard end > self.written else { return }
        FossilDelta.append(end - self.written, to: &self.output)
        self.output.append(UInt8(ascii: ":"))
        self.output.append(contentsOf: self.target[self.written..<end])
        self.written = end
    }
}
