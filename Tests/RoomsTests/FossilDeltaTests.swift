import Rooms
import TestSupport
import Testing

/// Contents, and the delta that Fossil's own encoder makes of them.
struct FossilVector: Sendable, CustomTestStringConvertible {
    let source: String
    let target: String
    let delta: String

    var testDescription: String { self.delta }

    private static func lines(_ numbers: [Int]) -> String {
        #"{"lines":["# + numbers.map { #""line number \#($0)""# }.joined(separator: ",") + "]}"
    }

    static let all = [
        FossilVector(
            source: String(repeating: "abc", count: 30), target: String(repeating: "abc", count: 30) + "def",
            delta: "1T\n1Q@0,3:defwqycG;"),
        FossilVector(
            source: Self.lines(Array(0..<12)), target: Self.lines(Array(6..<12) + Array(0..<6)),
            delta: "3D\nN@0,1K@1s,1:,1V@A,2:]}gcIfs;"),
        FossilVector(
            source: String(repeating: "0123456789abcdef", count: 8) + "XYZ",
            target: "head " + String(repeating: "0123456789abcdef", count: 4) + " middle "
                + String(repeating: "0123456789abcdef", count: 8) + "XYZ",
            delta: "3G\n5:head 10@10,8: middle 23@0,1mGhQp;"),
    ]
}

@Suite("Differences in Fossil's format")
struct FossilDeltaTests {
    private static func make(_ source: [UInt8], _ target: [UInt8], keepsCharacters: Bool = false) -> [UInt8]? {
        FossilDelta.make(from: source, to: target, keepsCharacters: keepsCharacters)
    }

    @Test(arguments: FossilVector.all)
    func isAsShortAsFossilsOwn(_ vector: FossilVector) throws {
        let (source, target) = (Array(vector.source.utf8), Array(vector.target.utf8))
        #expect(try FossilDeltaDecoder.apply(Array(vector.delta.utf8), to: source) == target)
        let made = try #require(Self.make(source, target))
        #expect(try FossilDeltaDecoder.apply(made, to: source) == target)
        #expect(made.count <= vector.delta.utf8.count + 4)
    }

    /// Written by hand from the description of the format.
    @Test func copiesAndInsertsWithTheTargetsChecksum() throws {
        let source = Array("the quick brown fox jumps over the lazy dog".utf8)
        // 43 bytes: 16 from the beginning, "cat" and 24 from offset 19; 43 is "g" in base 64, 16 "G", 24 "O", 19 "J".
        let delta = try #require(Self.make(source, Array("the quick brown cat jumps over the lazy dog".utf8)))
        let text = String(decoding: delta, as: UTF8.self)
        #expect(text.hasPrefix("g\nG@0,3:catO@J,") && text.hasSuffix(";"))
    }

    @Test(arguments: [(0, true), (1, false)])
    func contentAboveTheLimitHasNoDelta(_ more: Int, hasDelta: Bool) {
        let small = [UInt8](repeating: 65, count: 1000)
        let large = [UInt8](repeating: 65, count: FossilDelta.sizeLimit + more)
        #expect((Self.make(small, large) != nil) == hasDelta)
        #expect((Self.make(large, small) != nil) == hasDelta)
    }

    @Test func contentWithoutAShorterDeltaHasNone() {
        let text = Array("a message of some length".utf8)
        #expect(Self.make([], text) == nil)
        #expect(Self.make(text, []) == nil)
        #expect(Self.make(text, Array("something else entirely".utf8)) == nil)
        #expect(Self.make(Array("1".utf8), Array("1".utf8)) == nil)
        let large = [UInt8](repeating: 1, count: FossilDelta.sizeLimit + 1)
        #expect(Self.make(large, large) == nil)
    }

    @Test func changesOfAnyKindAreApplied() throws {
        for seed in 0..<400 as Range<UInt64> {
            var generator = SeededGenerator(seed: seed)
            let source = Self.content(.random(in: 1...4000, using: &generator), &generator)
            let target = Self.changed(source, &generator)
            guard let delta = Self.make(source, target) else { continue }
            #expect(delta.count < target.count, "seed \(seed)")
            #expect(try FossilDeltaDecoder.apply(delta, to: source) == target, "seed \(seed)")
        }
    }

    @Test func smallChangeOfALargeContentIsSmall() throws {
        var generator = SeededGenerator(seed: 7)
        let source = Self.content(60_000, &generator)
        var target = source
        target.replaceSubrange(20_000..<20_010, with: Array("changed".utf8))
        target.insert(contentsOf: source[1000..<3000], at: 50_000)
        let delta = try #require(Self.make(source, target))
        #expect(delta.count < 100)
        #expect(try FossilDeltaDecoder.apply(delta, to: source) == target)
    }

    @Test func deltaOfTextIsText() throws {
        // All characters have the same first byte, so that bytewise the longest matches end within characters.
        let letters = Array("абвгдежзийклмно")
        for seed in 0..<200 as Range<UInt64> {
            var generator = SeededGenerator(seed: seed)
            let source = String((0..<200).map { _ in letters.randomElement(using: &generator) ?? "а" })
            var characters = Array(source)
            for _ in 0..<3 {
                characters[.random(in: 0..<200, using: &generator)] = letters.randomElement(using: &generator) ?? "б"
            }
            let target = Array(String(characters).utf8)
            guard let delta = Self.make(Array(source.utf8), target, keepsCharacters: true) else { continue }
            #expect(String(validating: delta, as: UTF8.self) != nil, "seed \(seed)")
            #expect(try FossilDeltaDecoder.apply(delta, to: Array(source.utf8)) == target, "seed \(seed)")
        }
    }

    /// Equal blocks are all candidates for each other.
    @Test func repetitiveContentIsRestored() throws {
        let source = [UInt8](repeating: 0, count: 100_000)
        var target = source
        for index in stride(from: 15, to: target.count, by: 64) { target[index] = 1 }
        let delta = try #require(Self.make(source, target))
        #expect(try FossilDeltaDecoder.apply(delta, to: source) == target && delta.count < target.count / 4)
    }

    private static func content(_ count: Int, _ generator: inout SeededGenerator) -> [UInt8] {
        (0..<count).map { _ in UInt8.random(in: 97...104, using: &generator) }
    }

    /// Removes, inserts, repeats and moves pieces.
    private static func changed(_ source: [UInt8], _ generator: inout SeededGenerator) -> [UInt8] {
        var target = source
        for _ in 0..<Int.random(in: 0...6, using: &generator) {
            let start = Int.random(in: 0...target.count, using: &generator)
            let piece = start..<min(target.count, start + Int.random(in: 0...300, using: &generator))
            switch Int.random(in: 0..<4, using: &generator) {
            case 0: target.removeSubrange(piece)
            case 1: target.insert(contentsOf: Self.content(piece.count, &generator), at: start)
            case 2: target.insert(contentsOf: target[piece], at: .random(in: 0...target.count, using: &generator))
            default:
                let moved = Array(target[piece])
                target.removeSubrange(piece)
                target.insert(contentsOf: moved, at: .random(in: 0...target.count, using: &generator))
            }
        }
        return target
    }
}
