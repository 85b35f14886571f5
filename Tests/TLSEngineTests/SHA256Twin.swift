import Foundation

/// A plain, slow SHA-256 by FIPS 180-4.
enum SHA256Twin {
    static func digest(_ message: [UInt8]) -> [UInt8] {
        var state = Self.roots(of: Self.primes(8), power: 1.0 / 2.0)
        let constants = Self.roots(of: Self.primes(64), power: 1.0 / 3.0)
        var padded = message + [0x80]
        while padded.count % 64 != 56 { padded.append(0) }
        let bits = UInt64(message.count) * 8
        padded += (0..<8).map { UInt8(truncatingIfNeeded: bits >> UInt64(56 - 8 * $0)) }
        for start in stride(from: 0, to: padded.count, by: 64) {
            Self.compress(padded[start..<start + 64], into: &state, constants)
        }
        return state.flatMap { word in (0..<4).map { UInt8(truncatingIfNeeded: word >> UInt32(24 - 8 * $0)) } }
    }

    private static func compress(_ block: ArraySlice<UInt8>, into state: inout [UInt32], _ constants: [UInt32]) {
        var words = stride(from: block.startIndex, to: block.endIndex, by: 4).map { index in
            block[index..<index + 4].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
        }
        for index in 16..<64 {
            let first = Self.rotate(words[index - 15], 7) ^ Self.rotate(words[index - 15], 18) ^ words[index - 15] >> 3
            let second = Self.rotate(words[index - 2], 17) ^ Self.rotate(words[index - 2], 19) ^ words[index - 2] >> 10
            words.append(words[index - 16] &+ first &+ words[index - 7] &+ second)
        }
        var work = state
        for index in 0..<64 {
            let sum = Self.rotate(work[4], 6) ^ Self.rotate(work[4], 11) ^ Self.rotate(work[4], 25)
            let choice = work[4] & work[5] ^ ~work[4] & work[6]
            let first = work[7] &+ sum &+ choice &+ constants[index] &+ words[index]
            let turn = Self.rotate(work[0], 2) ^ Self.rotate(work[0], 13) ^ Self.rotate(work[0], 22)
            let majority = work[0] & work[1] ^ work[0] & work[2] ^ work[1] & work[2]
            work = [first &+ turn &+ majority, work[0], work[1], work[2], work[3] &+ first, work[4], work[5], work[6]]
        }
        for index in 0..<8 { state[index] &+= work[index] }
    }

    private static func rotate(_ word: UInt32, _ count: UInt32) -> UInt32 {
        word >> count | word << (32 - count)
    }

    private static func primes(_ count: Int) -> [Int] {
        var found: [Int] = []
        var candidate = 2
        while found.count < count {
            if found.allSatisfy({ candidate % $0 != 0 }) { found.append(candidate) }
            candidate += 1
        }
        return found
    }
}

extension SHA256Twin {
    /// The first 32 bits of the roots' fractional parts.
    static func roots(of primes: [Int], power: Double) -> [UInt32] {
        primes.map { prime in
            let root = power < 0.4 ? cbrt(Double(prime)) : Double(prime).squareRoot()
            return UInt32((root - root.rounded(.down)) * 4_294_967_296)
        }
    }
}
