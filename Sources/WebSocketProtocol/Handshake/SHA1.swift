import ByteKernels

/// SHA-1, for nothing but `Sec-WebSocket-Accept`, which needs no protection from forgery (RFC 6455 §10.8).
///
/// - Source: FIPS 180-4 §6.1.
package enum SHA1 {
    private typealias State = InlineArray<5, UInt32>
    private typealias Words = InlineArray<16, UInt32>

    /// The twenty bytes of the digest of `message`.
    package static func digest(_ message: consuming [UInt8]) -> [UInt8] {
        var state: State = [0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476, 0xC3D2_E1F0]
        self.pad(&message)
        message.withRawSpan { bytes in
            for start in stride(from: 0, to: bytes.byteCount, by: 64) {
                self.absorb(bytes.extracting(start..<(start + 64)), into: &state)
            }
        }
        var digest: [UInt8] = []
        digest.reserveCapacity(20)
        for index in state.indices {
            for shift in stride(from: UInt32(24), through: 0, by: -8) {
                digest.append(UInt8(truncatingIfNeeded: state[index] >> shift))
            }
        }
        return digest
    }

    /// A one bit, zeroes, and the length in bits in the last eight bytes of a block.
    private static func pad(_ message: inout [UInt8]) {
        let bitCount = UInt64(message.count) &* 8
        message.append(0x80)
        message.append(contentsOf: repeatElement(0, count: (120 - message.count % 64) % 64))
        for shift in stride(from: UInt64(56), through: 0, by: -8) {
            message.append(UInt8(truncatingIfNeeded: bitCount >> shift))
        }
    }

    private static func absorb(_ block: RawSpan, into state: inout State) {
        // The schedule looks back sixteen words at most, so sixteen are kept.
        var words = Words { block[bigEndianWord: 4 * $0] }
        var work = state
        // The functions and constants of §4.1.1 and §4.2.1, each for twenty rounds; two of them in a form with fewer
        // steps that gives the same.
        self.mix(0, &words, &work, 0x5A82_7999) { b, c, d in d ^ (b & (c ^ d)) }
        self.mix(20, &words, &work, 0x6ED9_EBA1) { b, c, d in b ^ c ^ d }
        self.mix(40, &words, &work, 0x8F1B_BCDC) { b, c, d in (b & c) | (d & (b | c)) }
        self.mix(60, &words, &work, 0xCA62_C1D6) { b, c, d in b ^ c ^ d }
        for index in state.indices { state[index] &+= work[index] }
    }

    /// Twenty rounds, five at a time: after five each variable is where it was, and none has to be moved.
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
