import TestSupport

/// Random texts of a grammar's elements, with noise in between.
struct FuzzText {
    private var generator: SeededGenerator
    private let pieces: [String]

    init(seed: UInt64, pieces: [String]) {
        self.generator = SeededGenerator(seed: seed)
        self.pieces = pieces
    }

    mutating func next() -> String {
        var bytes: [UInt8] = []
        for _ in 0..<Int.random(in: 0...14, using: &self.generator) {
            switch Int.random(in: 0..<12, using: &self.generator) {
            case 0: bytes += self.generator.bytes(Int.random(in: 1...4, using: &self.generator))
            case 1: bytes += String(self.generator.next() >> UInt64.random(in: 0...63, using: &self.generator)).utf8
            case 2: bytes += Array(repeating: UInt8(ascii: "9"), count: Int.random(in: 1...40, using: &self.generator))
            default: bytes += (self.pieces.randomElement(using: &self.generator) ?? "").utf8
            }
        }
        if Int.random(in: 0..<4, using: &self.generator) == 0, !bytes.isEmpty {
            bytes[Int.random(in: 0..<bytes.count, using: &self.generator)] ^=
                1 << UInt8.random(in: 0..<8, using: &self.generator)
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    mutating func lines() -> [String] {
        (0..<Int.random(in: 1...3, using: &self.generator)).map { _ in self.next() }
    }

    mutating func number(_ range: ClosedRange<Int64>) -> Int64 {
        Int64.random(in: range, using: &self.generator)
    }
}
