import TestSupport
import Testing

@Suite("expectDecodes feeds a decoder every way")
struct ExpectDecodesTests {
    /// Lines ended by LF.
    private final class Lines {
        private var unfinished: [UInt8] = []

        func feed(_ chunk: [UInt8]) -> [String] {
            var lines: [String] = []
            for byte in chunk {
                if byte == 0x0a {
                    lines.append(String(decoding: self.unfinished, as: UTF8.self))
                    self.unfinished = []
                } else {
                    self.unfinished.append(byte)
                }
            }
            return lines
        }
    }

    @Test func rightDecoderIsAcceptedInEverySplit() throws {
        try expectDecodes(Array("one\ntwo\n".utf8), to: ["one", "two"], followedBy: Array("three\nfo".utf8)) {
            Lines().feed
        }
    }

    @Test func decoderThatNeedsWholeInputIsDetected() throws {
        withKnownIssue {
            try expectDecodes(Array("one\ntwo\n".utf8), to: ["one", "two"]) { { Lines().feed($0) } }
        }
    }

    @Test func decoderThatConsumesTooMuchIsDetected() throws {
        withKnownIssue {
            try expectDecodes(Array("one\n".utf8), to: ["one"], followedBy: Array("two".utf8)) {
                { chunk in chunk.count == 4 ? ["one"] : [String(decoding: chunk, as: UTF8.self)] }
            }
        }
    }
}
