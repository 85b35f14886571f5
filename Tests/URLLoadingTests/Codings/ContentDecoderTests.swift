import ByteKernels
import Foundation
import Testing
import URLLoading

@Suite("Codings of a content, RFC 9110 §8.4")
struct ContentDecoderTests {
    /// - Returns: the decoded bytes, when fed in pieces of `size` bytes.
    private func decode(_ bytes: [UInt8], _ contentEncoding: String, size: Int) throws -> [UInt8] {
        let decoder = try #require(ContentDecoder(contentEncoding: contentEncoding))
        var output: [UInt8] = []
        for start in stride(from: 0, to: bytes.count, by: size) {
            let piece = Array(bytes[start..<min(bytes.count, start + size)])
            try decoder.decode(piece.span.bytes) { output += $0 }
        }
        try decoder.finish()
        return output
    }

    @Test(arguments: CodedContent.all)
    func codingIsUndoneInPiecesOfAnySize(_ content: CodedContent) throws {
        for size in [1, 2, 3, 7, 1 << 20] {
            let output = try self.decode(content.bytes, content.contentEncoding, size: size)
            #expect(String(decoding: output, as: UTF8.self) == CodedContent.text, "\(size)")
        }
    }

    @Test(arguments: CodedContent.all)
    func truncatedCodingIsAFailure(_ content: CodedContent) throws {
        // Bytes after the end of a coding may be missing.
        let whole = content.testDescription == "padded gzip" ? content.bytes.count - 9 : content.bytes.count
        let firstMember = content.testDescription == "gzip of two members" ? 50 : 0
        for count in 1..<whole where count != firstMember {
            let part = Array(content.bytes.prefix(count))
            #expect(throws: ContentDecodingFailure.truncated, "\(count) bytes") {
                _ = try self.decode(part, content.contentEncoding, size: 16)
            }
        }
    }

    @Test(arguments: ["gzip", "deflate", "br", "zstd"])
    func emptyContentDecodesToNothing(_ name: String) throws {
        #expect(try self.decode([], name, size: 1) == [])
    }

    @Test func corruptContentIsAFailure() throws {
        let content = CodedContent.all[0]
        for index in content.bytes.indices where index != 9 {  // which names the system it was made on
            var bytes = content.bytes
            bytes[index] ^= 0x10
            #expect(throws: ContentDecodingFailure.self, "byte \(index)") {
                let output = try self.decode(bytes, "gzip", size: 8)
                // The time and the extra flags may have any value.
                if output == Array(CodedContent.text.utf8) { throw ContentDecodingFailure.truncated }
            }
        }
        #expect(throws: ContentDecodingFailure.self) { try self.decode(Array("plain".utf8), "gzip", size: 8) }
    }

    @Test(arguments: ["exi", "x-zstd", "gzip, exi", "", "identity", "compress", "gzip, gzip, gzip, gzip, gzip"])
    func unsupportedCodingHasNoDecoder(_ name: String) {
        #expect(ContentDecoder(contentEncoding: name) === nil)
    }

    @Test(arguments: [CodedContent.bomb, CodedContent.brotliBomb])
    func contentIsDecodedOnlyAsFarAsRequested(_ content: CodedContent) throws {
        let decoder = try #require(ContentDecoder(contentEncoding: content.contentEncoding))
        let bomb = content.bytes
        decoder.feed(bomb.span.bytes)
        var count = 0
        while let piece = try decoder.next() {
            #expect(piece.count <= ContentDecoder.pieceLimit)
            count += piece.count
        }
        try decoder.finish()
        #expect(count == 64 << 20)
    }

    @Test func secondCompressedMemberIsDecoded() throws {
        let content = CodedContent.all[0]
        let output = try self.decode(content.bytes + content.bytes, "gzip", size: 5)
        #expect(String(decoding: output, as: UTF8.self) == CodedContent.text + CodedContent.text)
    }

    @Test(arguments: [1, 7, 1 << 20])
    func secondZstandardFrameIsDecoded(_ size: Int) throws {
        let content = CodedContent.zstandardFrames
        let output = try self.decode(content.bytes, content.contentEncoding, size: size)
        #expect(String(decoding: output, as: UTF8.self) == CodedContent.text)
    }

    /// RFC 9659 §3: a window above 8 MiB would let a server take as much memory as it likes.
    @Test func zstandardWindowAboveTheLimitIsRefused() throws {
        let content = CodedContent.wideZstandard
        #expect(throws: ContentDecodingFailure.corrupt(reason: "Frame requires too much memory for decoding")) {
            try self.decode(content.bytes, content.contentEncoding, size: 1 << 20)
        }
    }
}
