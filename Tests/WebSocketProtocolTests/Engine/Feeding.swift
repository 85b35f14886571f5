import TestSupport

/// How a stream arrives.
enum Feeding: CustomStringConvertible {
    case whole
    case byByte
    /// In pieces of up to `longest` bytes.
    case cut(seed: UInt64, longest: Int)

    /// Whole, byte by byte, and in seeded random pieces, short and long.
    static let usual: [Feeding] =
        [.whole, .byByte] + (1...4).map { .cut(seed: $0, longest: 7) } + (5...8).map { .cut(seed: $0, longest: 300) }

    func pieces(of bytes: [UInt8]) -> [[UInt8]] {
        switch self {
        case .whole: return [bytes]
        case .byByte: return bytes.map { [$0] }
        case .cut(let seed, let longest):
            var generator = SeededGenerator(seed: seed)
            return generator.cuts(of: bytes.count, longest: longest).map { Array(bytes[$0]) }
        }
    }

    var description: String {
        switch self {
        case .whole: "whole"
        case .byByte: "byte by byte"
        case .cut(let seed, let longest): "in pieces of up to \(longest) bytes, seed \(seed)"
        }
    }
}
