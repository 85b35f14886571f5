import HTTPTransport
import Testing
import WireText

@Suite("The length of a response's content, RFC 9112 §6.3")
struct ResponseFramingTests {
    private func head(_ status: Int, _ fields: [(String, String)], minor: Int = 1) -> ResponseHead {
        ResponseHead(
            version: HTTPVersion(1, minor), status: status, fields: FieldLines(fields.map { FieldLine($0.0, $0.1) }))
    }

    @Test func lengthIsReadFromTheFields() throws {
        #expect(try ResponseFraming.of(self.head(200, [("content-length", "42")]), method: "GET") == .length(42))
        #expect(try ResponseFraming.of(self.head(200, [("Transfer-Encoding", "CHUNKED")]), method: "GET") == .chunked)
        #expect(try ResponseFraming.of(self.head(200, []), method: "GET") == .untilClose)
        for twice in [[("Content-Length", "7"), ("Content-Length", "7")], [("Content-Length", "7 , 7,7")]] {
            #expect(try ResponseFraming.of(self.head(200, twice), method: "GET") == .length(7))
        }
    }

    @Test(arguments: [("HEAD", 200), ("GET", 204), ("GET", 304), ("GET", 199)])
    func responseToHeadHasNoContent(_ method: String, _ status: Int) throws {
        let contradicting = [("Content-Length", "-1"), ("Transfer-Encoding", "gzip, chunked")]
        for fields in [[("Content-Length", "42")], [("Transfer-Encoding", "chunked")], contradicting, []] {
            #expect(try ResponseFraming.of(self.head(status, fields), method: method) == .none)
        }
    }

    @Test(arguments: [
        ([("Content-Length", "5"), ("Content-Length", "6")], ResponseViolation.twoFramings),
        ([("Content-Length", "5, 6")], .twoFramings), ([("Content-Length", "5, x")], .twoFramings),
        ([("Content-Length", ",")], .contentLength), ([("Content-Length", "+5")], .contentLength),
        ([("Content-Length", "-5")], .contentLength), ([("Content-Length", "0x5")], .contentLength),
        ([("Content-Length", "")], .contentLength), ([("Content-Length", "99999999999999999999")], .contentLength),
        ([("Content-Length", "5"), ("Transfer-Encoding", "chunked")], .twoFramings),
        ([("Transfer-Encoding", "gzip, chunked")], .transferCoding),
        ([("Transfer-Encoding", "identity")], .transferCoding),
        ([("Transfer-Encoding", "chunked"), ("Transfer-Encoding", "chunked")], .transferCoding),
        ([("Transfer-Encoding", "xchunked")], .transferCoding),
    ])
    func ambiguousLengthIsRefused(_ fields: [(String, String)], _ violation: ResponseViolation) {
        #expect(throws: violation) { try ResponseFraming.of(self.head(200, fields), method: "GET") }
    }

    @Test func chunksFromAnHTTP10ServerAreRefused() {
        let head = self.head(200, [("Transfer-Encoding", "chunked")], minor: 0)
        #expect(throws: ResponseViolation.transferCoding) { try ResponseFraming.of(head, method: "GET") }
    }
}
