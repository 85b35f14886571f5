import Testing
import WebSocketProtocol

@Suite("Text as it arrives, RFC 6455 §8.1")
struct TextTests {
    /// Bytes with the offset of the first that is invalid UTF-8.
    static let invalid: [([UInt8], Int)] = [
        ([0x80], 0), ([0x61, 0xBF], 1), ([0xC0, 0x80], 0), ([0xC1, 0xBF], 0), ([0x61, 0xC3, 0x28], 2),
        ([0xE0, 0x80, 0x80], 1), ([0xE2, 0x82, 0x28], 2), ([0xED, 0xA0, 0x80], 1), ([0xF0, 0x80, 0x80, 0x80], 1),
        ([0xF0, 0x9F, 0x98, 0x41], 3), ([0xF4, 0x90, 0x80, 0x80], 1), ([0xF5], 0), ([0xFF], 0),
        (Array("κόσμε".utf8) + [0xED, 0xA0, 0x80] + Array("edited".utf8), 11),
    ]
    static let incomplete: [[UInt8]] = [
        [0xC3], [0xE2], [0xE2, 0x82], [0xF0], [0xF0, 0x9F], [0xF0, 0x9F, 0x98], Array("κόσμε".utf8).dropLast(),
    ]

    @Test(arguments: Role.both, Self.invalid)
    func invalidTextFailsAtItsByte(_ sender: Role, _ text: ([UInt8], Int)) {
        let bytes = WireFrame(0x81, text.0, from: sender).bytes
        let header = bytes.count - text.0.count
        let valid = Array(text.0.prefix(text.1))
        let before: [Observation] = valid.isEmpty ? [] : [.piece(.text, valid, starts: true)]
        // Exactly at this byte, although the frame continues.
        expectObserves(before, in: Array(bytes.prefix(header + text.1)), by: .receiving(from: sender))
        expectObserves(
            before + [.violation(.invalidUTF8)], in: Array(bytes.prefix(header + text.1 + 1)),
            by: .receiving(from: sender))
        expectObserves(
            before + [.violation(.invalidUTF8)], in: bytes + WireFrame(0x89, from: sender).bytes,
            by: .receiving(from: sender))
    }

    @Test(arguments: Role.both, Self.invalid)
    func invalidTextFailsAtItsByteAcrossFragments(_ sender: Role, _ text: ([UInt8], Int)) {
        // A frame for each byte, and empty ones between.
        var bytes: [UInt8] = []
        var expected: [Observation] = []
        for (index, byte) in text.0.enumerated() {
            bytes += WireFrame(index == 0 ? 0x01 : 0x00, [byte], from: sender).bytes
            bytes += WireFrame(0x00, from: sender).bytes
            if index < text.1 {
                expected += [.frame(.text, [byte], starts: index == 0), .frame(.text, [])]
            }
        }
        expectObserves(expected + [.violation(.invalidUTF8)], in: bytes, by: .receiving(from: sender))
    }

    @Test(arguments: Role.both, Self.incomplete)
    func messageThatEndsInsideACharacterIsRejected(_ sender: Role, _ text: [UInt8]) {
        expectObserves(
            [.piece(.text, text, starts: true), .violation(.invalidUTF8)],
            in: WireFrame(0x81, text, from: sender).bytes, by: .receiving(from: sender))
        expectObserves(
            [.frame(.text, text, starts: true), .violation(.invalidUTF8)],
            in: WireFrame(0x01, text, from: sender).bytes + WireFrame(0x80, from: sender).bytes,
            by: .receiving(from: sender))
    }

    @Test(arguments: Role.both)
    func charactersCutByFragmentsAreRead(_ sender: Role) {
        let text = Array("aß水🙂\u{10FFFF}\u{0}".utf8)
        for cut in 0...text.count {
            let bytes =
                WireFrame(0x01, Array(text[..<cut]), from: sender).bytes
                + WireFrame(0x89, from: sender).bytes + WireFrame(0x80, Array(text[cut...]), from: sender).bytes
            expectObserves(
                [
                    .frame(.text, Array(text[..<cut]), starts: true), .ping([]),
                    .frame(.text, Array(text[cut...]), ends: true),
                ],
                in: bytes, by: .receiving(from: sender))
        }
    }

    @Test(arguments: Role.both)
    func onlyTextIsCheckedAndEachMessageStartsAfresh(_ sender: Role) {
        let bytes =
            WireFrame(0x82, [0xFF, 0xC3], from: sender).bytes + WireFrame(0x81, "ß", from: sender).bytes
            + WireFrame(0x82, [0xC3], from: sender).bytes + WireFrame(0x81, [], from: sender).bytes
        expectObserves(
            [.binary([0xFF, 0xC3]), .text("ß"), .binary([0xC3]), .text("")], in: bytes, by: .receiving(from: sender))
    }
}
