import ByteKernels

/// SHA-1, only for `Sec-WebSocket-Accept`, which does not depend on its security (RFC 6455 §10.8).
///
/// - Source: FIPS 180-4 §6.1.
package struct SHA1 {
    package typealias Digest = InlineArray<20, UInt8>

    private typealias State = InlineArray<5, UInt32>
    private typealias Words = InlineArray<16, UInt32>

    private var state: State = [0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476, 0xC3D2_E1F0]
    private var block = InlineArray<64, UInt8>(repeating: 0)
    /// Length of the message so far.
    private var byteCount = 0

    package init() {}

    package mutating func update(_ bytes: RawSpan) {
        for offset in 0..<bytes.byteCount { self.put(bytes[byte: offset]) }
    }

    package consuming func digest() -> Digest {
        // Padding: a one bit, zeros, and the length in bits in the last eight bytes of a block.
        let bitCount = UInt64(self.byteCount) &* 8
        self.put(0x80)
        if self.byteCount & 63 > 56 { self.fill(to: 64) }
        self.fill(to: 56)
        for index in 56..<64 { self.block[index] = UInt8(truncatingIfNeeded: bitCount >> UInt64(8 * (63 - index))) }
        self.absorbBlock()
        let state = self.state
        return Digest { UInt8(truncatingIfNeeded: state[$0 / 4] >> UInt32(24 - 8 * ($0 % 4))) }
    }

    /// Fills the block with zeros up to `end`, and absorbs it if it is full.
    private mutating func fill(to end: Int) {
        for index in (self.byteCount & 63)..<end { self.block[index] = 0 }
        self.byteCount &+= end &- self.byteCount & 63
        if end == 64 { self.absorbBlock() }
    }

    @inline(__always)
    private mutating func put(_ byte: UInt8) {
        self.block[self.byteCount & 63] = byte
        self.byteCount &+= 1
        if self.byteCount & 63 == 0 { self.absorbBlock() }
    }

    private mutating func absorbBlock() {
        Self.absorb(self.block.span.bytes, into: &self.state)
    }

    private static func absorb(_ block: RawSpan, into state: inout State) {
        // A step of the schedule needs only the last sixteen words.
        var words = Words { block[bigEndianWord: 4 * $0] }
        var work = state
        // The functions and constants of §4.1.1 and §4.2.1, each for twenty rounds; Ch and Maj in equivalent forms with
        // fewer operations.
        self.mix(0, &words, &work, 0x5A82_7999) { b, c, d in d ^ (b & (c ^ d)) }
        self.mix(20, &words, &work, 0x6ED9_EBA1) { b, c, d in b ^ c ^ d }
        self.mix(40, &words, &work, 0x8F1B_BCDC) { b, c, d in (b & c) | (d & (b | c)) }
        self.mix(60, &words, &work, 0xCA62_C1D6) { b, c, d in b ^ c ^ d }
        for index in state.indices { state[index] &+= work[index] }
    }

    /// Twenty rounds, unrolled by five: after five rounds each variable is back in its place.
    @inline(__always)
    private static func mix(
        _ first: Int, _ words: inout Words, _ work: inout State, _ constant: UInt32,
        _ choose: (UInt32, UInt32, UInt32) -> UInt32
    ) {
        var (a, b, c, d, e) = (work[0], work[1], work[2], work[3], work[4])
        for round in stride(from: first, to: first + 20, by: 5) {
            self.step(a, &b, choose(b, c, d) &+ self.word(round, &words) &+ constant, &e)
            self.step(e, &a, choose(a, b, c) &+ self.word(round &+ 1, &words) &+ constant, &d)
            self.step(d, &e, choose(e, a, b) &+ self.word(round &+ 2, &words) &+ constant, &c)
            self.step(c, &d, choose(d, e, a) &+ self.word(round &+ 3, &words) &+ constant, &b)
            self.step(b, &c, choose(c, d, e) &+ self.word(round &+ 4, &words) &+ constant, &a)
        }
        work = [a, b, c, d, e]
    }

    @inline(__always)
    private static func step(_ a: UInt32, _ b: inout UInt32, _ mixed: UInt32, _ e: inout UInt32) {
        e = e &+ self.rotate(a, by: 5) &+ mixed
        b = self.rotate(b, by: 30)
    }

    /// The schedule's word for `round`.
    @inline(__always)
    private static func word(_ round: Int, _ words: inout Words) -> UInt32 {
        guard round >= 16 else { return words[round & 15] }
        let mixed =
            words[(round &+ 13) & 15] ^ words[(round &+ 8) & 15] ^ words[(round &+ 2) & 15] ^ words[round & 15]
        let word = self.rotate(mixed, by: 1)
        words[round & 15] = word
        return word
    }

    @inline(__always)
    private static func rotate(_ word: UInt32, by count: UInt32) -> UInt32 {
        word &<< count | word &>> (32 &- count)
    }
}
