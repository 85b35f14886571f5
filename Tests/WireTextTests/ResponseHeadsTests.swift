import Testing
import WireText

@Suite("Strict response heads, RFC 9112 §2.2, §4, §5")
struct ResponseHeadsTests {
    private struct Outcome: Equatable {
        var heads: [Int] = []
        /// Of all fields of each head.
        var values: [[String]] = []
        var lengths: [Int] = []
        var violation: HeadViolation?
    }

    /// Feeds `text` in pieces of `size` bytes, each parsed until it holds no further end of a head.
    private func scan(_ text: String, pieces size: Int, limit: Int = 4096) -> Outcome {
        let bytes = Array(text.utf8)
        var parser = ResponseParser(limits: HeadLimits(byteCount: limit))
        var outcome = Outcome()
        var length = 0
        var start = 0
        do throws(HeadViolation) {
            while start < bytes.count {
                let piece = Array(bytes[start..<min(bytes.count, start + size)])
                start += piece.count
                var offset = 0
                while offset < piece.count {
                    let begin = offset
                    let head = try parser.parse(piece.span.bytes, consumed: &offset)
                    length += offset - begin
                    guard let head else { break }
                    outcome.heads.append(head.status)
                    outcome.values.append(head.fields.all.map(\.value))
                    outcome.lengths.append(length)
                    length = 0
                }
            }
        } catch {
            outcome.violation = error
        }
        return outcome
    }

    private func everySplit(_ text: String, limit: Int = 4096) -> Outcome {
        let whole = self.scan(text, pieces: .max / 2, limit: limit)
        for size in [1, 2, 3, 7] {
            #expect(self.scan(text, pieces: size, limit: limit) == whole, "in pieces of \(size)")
        }
        return whole
    }

    @Test func endOfAHeadAndTheFollowingBytesAreFound() {
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n"
        let informational = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
        let outcome = self.everySplit(informational + head + "HTTP/1.1")
        #expect(outcome.heads == [103, 200])
        #expect(outcome.lengths == [informational.utf8.count, head.utf8.count])
        #expect(outcome.violation == nil)
    }

    @Test(arguments: [
        "HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.0 404 \r\n\r\n", "HTTP/1.1 204\r\nA:\r\n\r\n",
        "HTTP/1.1 200 \u{E9}\r\nX: \u{E9}\t a\r\n\r\n",
    ])
    func grammaticalHeadIsAccepted(_ head: String) {
        let outcome = self.everySplit(head)
        #expect(outcome.heads.count == 1)
        #expect(outcome.violation == nil)
    }

    @Test(arguments: [
        ("HTTP/20 200 OK\r\n", HeadViolation.malformedStartLine), ("HTTP/1.12 200 OK\r\n", .malformedStartLine),
        ("http/1.1 200 OK\r\n", .malformedStartLine), ("\r\nHTTP/1.1 200 OK\r\n", .malformedStartLine),
        ("HTTP/1.1  200 OK\r\n", .malformedStartLine), ("HTTP/1.1 20 OK\r\n", .malformedStartLine),
        ("HTTP/1.1 2000 OK\r\n", .malformedStartLine), ("HTTP/1.1 099 OK\r\n", .malformedStartLine),
        ("HTTP/1.1 200 OK\rX", .bareCarriageReturn), ("HTTP/1.1 200 OK\r\nA: b\r\n\rX", .bareCarriageReturn),
        ("HTTP/1.1 200 OK\r\nA: b\rC: d\r\n\r\n", .bareCarriageReturn), ("\nHTTP/1.1 200 OK\n", .malformedStartLine),
        ("HTTP/1.1 200 OK\n folded\nA: b\n\n", .foldedField),
        ("HTTP/1.1 200 OK\r\n\tA: b\r\n\r\n", .foldedField),
        ("HTTP/1.1 200 OK\r\nA : b\r\n\r\n", .whitespaceBeforeColon),
        ("HTTP/1.1 200 OK\r\n: b\r\n\r\n", .malformedFieldName), ("HTTP/1.1 200 OK\r\nA\r\n\r\n", .malformedFieldName),
        ("HTTP/1.1 200 OK\r\nA: \u{0}\r\n\r\n", .controlCharacter), ("HTTP/1.1 200 \u{7F}\r\n\r\n", .controlCharacter),
    ])
    func ambiguousHeadIsRefused(_ head: String, _ violation: HeadViolation) {
        #expect(self.everySplit(head).violation == violation)
    }

    /// RFC 9112 §2.2 and §5.2.
    @Test(arguments: [
        ("HTTP/1.1 200 OK\nA: b\nC: d\n\n", ["b", "d"]), ("HTTP/1.1 200 OK\r\nA: b\nC: d\r\n\n", ["b", "d"]),
        ("HTTP/1.1 200 OK\r\nA: b\r\n folded \r\nC: d\r\n\r\n", ["b folded", "d"]),
        ("HTTP/1.1 200 OK\r\nA:\r\n\t b\r\n  \r\n c\r\n\r\n", ["b c"]),
    ])
    func linesOfOldServersAreRead(_ head: String, _ values: [String]) {
        let outcome = self.everySplit(head)
        #expect(outcome.violation == nil)
        #expect(outcome.values == [values])
    }

    @Test func foldsCountAsFields() {
        let head = "HTTP/1.1 200 OK\r\nA: b\r\n" + String(repeating: " c\r\n", count: 100) + "\r\n"
        #expect(self.everySplit(head).violation == .tooManyFields(limit: 100))
    }

    @Test func headWithoutAnEndIsStopped() {
        let line = "X: " + String(repeating: "a", count: 97) + "\r\n"
        let head = "HTTP/1.1 200 OK\r\n" + String(repeating: line, count: 20)
        #expect(self.everySplit(head, limit: 1000).violation == .tooLong(limit: 1000))
        let endless = "HTTP/1.1 200 " + String(repeating: "a", count: 2000)
        #expect(self.everySplit(endless, limit: 1000).violation == .tooLong(limit: 1000))
    }
}
