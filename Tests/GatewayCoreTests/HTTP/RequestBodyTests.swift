import ByteKernels
import GatewayCore
import TestSupport
import Testing
import WebSocketProtocol
import WireText

@Suite("Bodies of requests, RFC 9112 §6 and §7")
struct RequestBodyTests {
    struct Framing: Sendable, CustomTestStringConvertible {
        let fields: [(String, String)]
        var version = HTTPVersion(1, 1)
        let framing: RequestBodyFraming?
        var status = 0
        var testDescription: String { "\(self.fields)" }
    }

    static let framings: [Framing] = [
        Framing(fields: [], framing: .empty),
        Framing(fields: [("Content-Length", "0")], framing: .empty),
        Framing(fields: [("Content-Length", "12")], framing: .length(12)),
        Framing(fields: [("Content-Length", "12"), ("Content-Length", "12")], framing: .length(12)),
        Framing(fields: [("Content-Length", "12, 12")], framing: .length(12)),
        Framing(fields: [("Content-Length", "12"), ("Content-Length", "13")], framing: nil, status: 400),
        Framing(fields: [("Content-Length", "-1")], framing: nil, status: 400),
        Framing(fields: [("Content-Length", "+1")], framing: nil, status: 400),
        Framing(fields: [("Content-Length", "0x10")], framing: nil, status: 400),
        Framing(fields: [("Content-Length", "")], framing: nil, status: 400),
        Framing(fields: [("Content-Length", "9223372036854775808")], framing: nil, status: 400),
        Framing(fields: [("Transfer-Encoding", "chunked")], framing: .chunked),
        Framing(fields: [("Transfer-Encoding", "CHUNKED")], framing: .chunked),
        Framing(fields: [("Transfer-Encoding", "gzip, chunked")], framing: nil, status: 501),
        Framing(fields: [("Transfer-Encoding", "identity")], framing: nil, status: 501),
        Framing(fields: [("Transfer-Encoding", "chunked"), ("Content-Length", "3")], framing: nil, status: 400),
        Framing(
            fields: [("Transfer-Encoding", "chunked")], version: HTTPVersion(1, 0), framing: nil, status: 400),
    ]

    @Test(arguments: framings)
    func framingIsThatOfTheFields(_ vector: Framing) {
        let fields = FieldLines(vector.fields.map { FieldLine($0.0, $0.1) })
        let head = RequestHead(method: "POST", target: "/", version: vector.version, fields: fields)
        do throws(HandshakeRefusal) {
            let framing = try RequestBodyFraming(head)
            #expect(framing == vector.framing)
        } catch {
            #expect(vector.framing == nil && error.status == vector.status)
        }
    }

    /// What a body decodes to: its bytes, or the violation, and the bytes that were used.
    enum Event: Equatable {
        case byte(UInt8)
        case complete
        case violation(RequestBodyDecoder.Violation)
    }

    private static func events(_ framing: RequestBodyFraming, limit: Int = 20) -> ([UInt8]) -> [Event] {
        var decoder = try? RequestBodyDecoder(framing, limit: limit)
        var isOver = false
        return { chunk in
            guard !isOver else { return [] }
            var body: [UInt8] = []
            var end: [Event] = []
            do throws(RequestBodyDecoder.Violation) {
                try chunk.withRawSpan { bytes in
                    Result { () throws(RequestBodyDecoder.Violation) in
                        var used = 0
                        try decoder?.decode(bytes, consumed: &used, keeps: true, into: &body)
                    }
                }.get()
                if decoder?.isComplete == true { end = [.complete] }
            } catch {
                end = [.violation(error)]
            }
            isOver = !end.isEmpty
            return body.map { .byte($0) } + end
        }
    }

    private static func bytes(_ text: String) -> [Event] { text.utf8.map { .byte($0) } }

    struct Coded: Sendable, CustomTestStringConvertible {
        let text: String
        let body: String
        var violation: RequestBodyDecoder.Violation?
        var testDescription: String { self.text.debugDescription }
    }

    static let chunks: [Coded] = [
        Coded(text: "0\r\n\r\n", body: ""),
        Coded(text: "5\r\nhello\r\n0\r\n\r\n", body: "hello"),
        Coded(text: "5;name=value\r\nhello\r\n01\r\n!\r\n000\r\n\r\n", body: "hello!"),
        Coded(text: "A ;\r\n0123456789\r\na\r\n0123456789\r\n0\r\n\r\n", body: "01234567890123456789"),
        Coded(text: "1\r\nx\r\n0\r\nTrailer: a\r\nB: c\r\n\r\n", body: "x"),
        Coded(text: "\r\n", body: "", violation: .malformedChunk),
        Coded(text: "g\r\n", body: "", violation: .malformedChunk),
        Coded(text: "5\nhello", body: "", violation: .malformedChunk),
        Coded(text: "5\r\nhelloX", body: "hello", violation: .malformedChunk),
        Coded(text: "5\r\nhello\rX", body: "hello", violation: .malformedChunk),
        Coded(text: "0x5\r\n", body: "", violation: .malformedChunk),
        Coded(text: "0000000000000005\r\n", body: "", violation: .malformedChunk),
        Coded(text: "15\r\n", body: "", violation: .tooLong(limit: 20)),
        Coded(text: "fffffffffffffff\r\n", body: "", violation: .tooLong(limit: 20)),
        Coded(
            text: "14\r\n01234567890123456789\r\n1\r\n", body: "01234567890123456789", violation: .tooLong(limit: 20)),
        Coded(text: "0\r\nA: \u{1}\r\n", body: "", violation: .malformedTrailer),
        Coded(text: "0\r\nX y\r\n\r\n", body: "", violation: .malformedTrailer),
        Coded(text: "5 \r\nhello\r\n0\r\n\r\n", body: "", violation: .malformedChunk),
        Coded(text: "5 \t;a=b\r\nhello\r\n0 ;c\r\n\r\n", body: "hello", violation: nil),
    ]

    @Test(arguments: chunks)
    func chunksDecodeHoweverTheyAreSplit(_ vector: Coded) throws {
        let events = Self.bytes(vector.body) + [vector.violation.map { .violation($0) } ?? .complete]
        try expectDecodes(Array(vector.text.utf8), to: events, followedBy: Array("GET / ".utf8)) {
            Self.events(.chunked)
        }
    }

    @Test func aBodyOfKnownLengthEndsThere() throws {
        try expectDecodes(Array("hello".utf8), to: Self.bytes("hello") + [.complete], followedBy: Array("GET".utf8)) {
            Self.events(.length(5))
        }
    }

    @Test func aBodyKnownToBeTooLongIsRefusedBeforeItComes() {
        #expect(throws: RequestBodyDecoder.Violation.tooLong(limit: 4)) { try RequestBodyDecoder(.length(5), limit: 4) }
        #expect(throws: Never.self) { try RequestBodyDecoder(.length(4), limit: 4) }
    }

    @Test func extensionsAndTrailersAreBounded() {
        let events = Self.events(.chunked)
        #expect(events(Array("1;".utf8) + [UInt8](repeating: 0x61, count: 20_000)) == [.violation(.malformedChunk)])
        let more = Self.events(.chunked)
        let trailer = Array("0\r\nA: ".utf8) + [UInt8](repeating: 0x61, count: 20_000)
        #expect(more(trailer) == [.violation(.malformedTrailer)])
    }
}
