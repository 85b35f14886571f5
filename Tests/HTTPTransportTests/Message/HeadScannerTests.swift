import ByteKernels
import HTTPTransport
import Testing

@Suite("Response heads held to the letter, RFC 9112 §2.2, §4, §5")
struct HeadScannerTests {
    private struct Outcome: Equatable {
        var heads: [Int] = []
        var lengths: [Int] = []
        var violation: ResponseViolation?
    }

    /// Feeds `text` in pieces of `size` bytes, each scanned until it holds no further head's end.
    private func scan(_ text: String, pieces size: Int, limit: Int = 4096) -> Outcome {
        let bytes = Array(text.utf8)
        var scanner = HeadScanner(limit: limit)
        var outcome = Outcome()
        var length = 0
        var start = 0
        do throws(ResponseViolation) {
            while start < bytes.count {
                let piece = Array(bytes[start..<min(bytes.count, start + size)])
                start += piece.count
                var offset = 0
                while let found = try piece.withScan(&scanner, from: offset) {
                    outcome.heads.append(found.status)
                    outcome.lengths.append(length + found.end - offset)
                    length = 0
                    offset = found.end
                }
                length += piece.count - offset
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

    @Test func findsTheEndOfAHeadAndWhatFollows() {
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
    func acceptsWhatTheGrammarAllows(_ head: String) {
        let outcome = self.everySplit(head)
        #expect(outcome.heads.count == 1)
        #expect(outcome.violation == nil)
    }

    @Test(arguments: [
        ("HTTP/2.0 200 OK\r\n", ResponseViolation.statusLine), ("HTTP/1.2 200 OK\r\n", .statusLine),
        ("http/1.1 200 OK\r\n", .statusLine), ("\r\nHTTP/1.1 200 OK\r\n", .statusLine),
        ("HTTP/1.1  200 OK\r\n", .statusLine), ("HTTP/1.1 20 OK\r\n", .statusLine),
        ("HTTP/1.1 2000 OK\r\n", .statusLine), ("HTTP/1.1 099 OK\r\n", .statusLine),
        ("HTTP/1.1 200 OK\n", .bareLineBreak), ("HTTP/1.1 200 OK\rX", .bareLineBreak),
        ("HTTP/1.1 200 OK\r\nA: b\nC: d\r\n\r\n", .bareLineBreak),
        ("HTTP/1.1 200 OK\r\nA: b\r\n\n", .bareLineBreak), ("HTTP/1.1 200 OK\r\nA: b\r\n\rX", .bareLineBreak),
        ("HTTP/1.1 200 OK\r\nA: b\rC: d\r\n\r\n", .bareLineBreak),
        ("HTTP/1.1 200 OK\r\nA: b\r\n folded\r\n\r\n", .foldedField),
        ("HTTP/1.1 200 OK\r\n\tA: b\r\n\r\n", .foldedField), ("HTTP/1.1 200 OK\r\nA : b\r\n\r\n", .fieldName),
        ("HTTP/1.1 200 OK\r\n: b\r\n\r\n", .fieldName), ("HTTP/1.1 200 OK\r\nA\r\n\r\n", .fieldName),
        ("HTTP/1.1 200 OK\r\nA: \u{0}\r\n\r\n", .fieldValue), ("HTTP/1.1 200 \u{7F}\r\n\r\n", .fieldValue),
    ])
    func refusesWhatTwoReadersWouldReadDifferently(_ head: String, _ violation: ResponseViolation) {
        #expect(self.everySplit(head).violation == violation)
    }

    @Test func endsAHeadThatGoesOnForEver() {
        let line = "X: " + String(repeating: "a", count: 97) + "\r\n"
        let head = "HTTP/1.1 200 OK\r\n" + String(repeating: line, count: 20)
        #expect(self.everySplit(head, limit: 1000).violation == .headTooLarge)
        let endless = "HTTP/1.1 200 " + String(repeating: "a", count: 2000)
        #expect(self.everySplit(endless, limit: 1000).violation == .headTooLarge)
    }
}

extension [UInt8] {
    fileprivate func withScan(
        _ scanner: inout HeadScanner, from offset: Int
    ) throws(ResponseViolation) -> (end: Int, status: Int)? {
        try scanner.scan(self.span.bytes, from: offset)
    }
}
