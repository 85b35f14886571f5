import ByteKernels
import Testing
import WireText

@Suite("Chunked content, RFC 9112 §7.1")
struct ChunkReaderTests {
    private struct Body: Equatable {
        var content = ""
        /// The bytes from the trailers on; `nil` if the body did not reach them.
        var rest: String?
    }

    /// Reads the text in pieces of `size` bytes.
    private func read(_ text: String, pieces size: Int = .max, limit: Int = 100) throws(ChunkViolation) -> Body {
        var reader = ChunkReader(limit: limit)
        var body = Body()
        let bytes = Array(text.utf8)
        var start = 0
        while start < bytes.count {
            let piece = Array(bytes[start..<min(bytes.count, size == .max ? bytes.count : start + size)])
            var offset = 0
            pieces: while offset < piece.count {
                switch try reader.next(piece.span.bytes, from: offset) {
                case .more: break pieces
                case .content(let range):
                    body.content += String(decoding: piece[range], as: UTF8.self)
                    offset = range.upperBound
                case .trailers(let from):
                    body.rest = String(decoding: bytes[(start + from)...], as: UTF8.self)
                    return body
                }
            }
            start += piece.count
        }
        return body
    }

    @Test(arguments: [1, 2, 3, 7, .max])
    func chunkedContentIsTheSameHoweverItIsCut(_ size: Int) throws {
        let text = "4\r\nWiki\r\n6;a=\"b c\";d\r\npedia \r\nE \t;x\r\nin \r\n\r\nchunks.\r\n0\r\nT: u\r\n\r\n"
        let body = try self.read(text, pieces: size)
        #expect(body == Body(content: "Wikipedia in \r\n\r\nchunks.", rest: "T: u\r\n\r\n"))
    }

    @Test(arguments: [
        "000A\r\n0123456789\r\n0\r\n\r\n", "a\r\n0123456789\r\n00\r\n\r\n", "A;\r\n0123456789\r\n0;z\r\n\r\n",
    ])
    func chunkSizesAreHexadecimal(_ text: String) throws {
        #expect(try self.read(text) == Body(content: "0123456789", rest: "\r\n"))
    }

    @Test func chunkedInputMayEndAnywhere() throws {
        let bytes = Array("3\r\nabc\r\n0\r\n\r\n".utf8)
        for cut in 0..<(bytes.count - 1) {
            let body = try self.read(String(decoding: bytes[..<cut], as: UTF8.self))
            #expect(body.rest == nil && "abc".hasPrefix(body.content), "cut at \(cut)")
        }
    }

    @Test(arguments: [
        ("x\r\n", ChunkViolation.chunk), ("\r\n", .chunk), ("-1\r\n", .chunk), ("0x5\r\n", .chunk),
        (" 5\r\n", .chunk), ("5 \r\n", .chunk), ("5 x\r\n", .chunk), ("5;a\u{0}\r\n", .chunk),
        ("8000000000000000\r\n", .chunk), ("FFFFFFFFFFFFFFFFF\r\n", .chunk), ("1\r\nab", .chunk),
        ("5\nhello\n", .bareLineBreak), ("5;a\nhello\n", .bareLineBreak), ("5\rx", .bareLineBreak),
        ("1\r\na\rx", .bareLineBreak),
    ])
    func ambiguousChunkIsRefused(_ text: String, _ violation: ChunkViolation) {
        #expect(throws: violation) { try self.read(text) }
        #expect(throws: violation) { try self.read(text, pieces: 1) }
    }

    @Test func framingWithoutContentIsBounded() throws {
        #expect(throws: ChunkViolation.framingWithoutContent) {
            try self.read("1;" + String(repeating: "a", count: 200))
        }
        #expect(throws: ChunkViolation.framingWithoutContent) { try self.read(String(repeating: "0", count: 200)) }
        let small = String(repeating: "1;aaaaaaaaaa\r\nx\r\n", count: 50)
        #expect(try self.read(small).content.utf8.count == 50)
    }
}
