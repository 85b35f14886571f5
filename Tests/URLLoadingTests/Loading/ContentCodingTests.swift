import Deflate
import Foundation
import Testing
import URLLoading

@Suite("Coded contents of responses", .loading, .timeLimit(.minutes(20)))
struct ContentCodingTests {
    @Test func codingIsUndone() async throws {
        let text = String(repeating: "The quick brown fox. ", count: 5000)
        let server = try await WebServer([
            "/gzip": Coded.gzip(text), "/deflate": Coded.deflate(text), "/raw": Coded.rawDeflate(text),
            "/none": .text(text, ["Content-Encoding: identity"]),
            "/two": .response(
                200, ["Content-Encoding: deflate, gzip"],
                Coded.deflated(Coded.deflated(Array(text.utf8), .zlib), .gzip)),
        ])
        let session = URLSession.test()
        for path in ["/gzip", "/deflate", "/raw", "/none", "/two"] {
            let loaded = try await session.load(server.url(path))
            #expect(loaded.text == text && loaded.error == nil, "\(path)")
            #expect((loaded.response?.expectedContentLength == -1) == (path != "/none"), "\(path)")
        }
        session.invalidateAndCancel()
    }

    @Test func codingsOfInstalledLibrariesAreAnnouncedAndUndone() async throws {
        let server = try await WebServer()
        for content in CodedContent.all where ["br", "zstd"].contains(content.contentEncoding) {
            server.on("/", .response(200, ["Content-Encoding: \(content.contentEncoding)"], content.bytes))
            let session = URLSession.test()
            #expect(try await session.load(server.url()).text == CodedContent.text)
            session.invalidateAndCancel()
        }
        #expect(server.requests.count == 2)
        #expect(server.requests.allSatisfy { $0["Accept-Encoding"] == "gzip, deflate, br, zstd" })
    }

    @Test func unknownCodingIsNotDecoded() async throws {
        let server = try await WebServer(["/": .text("as it is", ["Content-Encoding: x-own"])])
        let session = URLSession.test()
        #expect(try await session.load(server.url()).text == "as it is")
        session.invalidateAndCancel()
    }

    @Test func codingIsUndoneWhereverItIsCut() async throws {
        let coded = Coded.gzip("Hello World!").bytes
        let body = Array(coded.drop { $0 != 0x1F })
        let server = try await WebServer()
        server.on(
            "/",
            Answer(
                Answer.head(200, ["Content-Encoding: gzip", "Transfer-Encoding: chunked"]).steps
                    + body.map { .send(Answer.chunk([$0])) } + [.send(Array("0\r\n\r\n".utf8))]))
        let session = URLSession.test()
        #expect(try await session.load(server.url()).text == "Hello World!")
        session.invalidateAndCancel()
    }

    /// The last chunk is the checksum, which gives no content.
    @Test func allBytesOfACodingAreCounted() async throws {
        let coded = Coded.deflated(Array("Hello World!".utf8), .gzip)
        let fields = ["Content-Encoding: gzip", "Transfer-Encoding: chunked"]
        let pieces = [coded.dropLast(8), coded.suffix(8), []].map { Answer.chunk($0) }
        let server = try await WebServer(["/": .head(200, fields).then(.send(Array(pieces.joined())))])
        let session = URLSession.test()
        let counted = Outcome<URLSessionTask>()
        #expect(try await session.load(server.url()) { counted.give($0) }.text == "Hello World!")
        #expect(counted.now?.countOfBytesReceived == Int64(coded.count))
        session.invalidateAndCancel()
    }

    @Test func emptyCodedResponseHasNoContent() async throws {
        let server = try await WebServer([
            "/": .head(204, ["Content-Encoding: gzip"]), "/empty": .response(200, ["Content-Encoding: gzip"], []),
            "/head": .head(200, ["Content-Encoding: gzip", "Content-Length: 40"]),
        ])
        let session = URLSession.test()
        for (path, method) in [("/", "GET"), ("/empty", "GET"), ("/head", "HEAD")] {
            let loaded = try await session.load(.to(server.url(path), method))
            #expect(loaded.error == nil && loaded.data == Data(), "\(path)")
        }
        session.invalidateAndCancel()
    }
}
