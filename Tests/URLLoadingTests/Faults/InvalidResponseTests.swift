import Deflate
import Foundation
import Testing
import URLLoading

@Suite("Invalid responses", .loading, .timeLimit(.minutes(20)))
struct InvalidResponseTests {
    /// An invalid response, and the error codes of the load.
    struct InvalidResponse: CustomTestStringConvertible, Sendable {
        let name: String
        let answer: Answer
        let codes: [URLError.Code]

        init(_ name: String, _ text: String, _ codes: URLError.Code...) {
            self.name = name
            self.answer = Answer.raw(text).closing
            self.codes = codes
        }

        var testDescription: String { self.name }

        static let all = [
            InvalidResponse("nothing at all", "", .networkConnectionLost),
            InvalidResponse("no status line", "\r\n\r\n\r\n", .badServerResponse),
            InvalidResponse("a version alone", "HTTP/1.1\r\n\r\n\r\n", .badServerResponse),
            InvalidResponse("two digits", "HTTP/1.1 20 Too Few\r\n\r\n", .badServerResponse),
            InvalidResponse("four digits", "HTTP/1.1 2000 Too Many\r\n\r\n", .badServerResponse),
            InvalidResponse("no digits", "HTTP/1.1 abc Wrong\r\n\r\n", .badServerResponse),
            InvalidResponse(
                "an old answer", "just text, as HTTP/0.9 had it\r\n", .badServerResponse),
            InvalidResponse(
                "HTTP/2 in the clear", "\0\0\u{18}\u{4}\0\0\0\0\0", .badServerResponse),
            InvalidResponse("another protocol", "SSH-2.0-OpenSSH_9.2\r\n", .badServerResponse),
            InvalidResponse("half a head", "HTTP/1.1 200 OK\r\nContent-Len", .networkConnectionLost),
            InvalidResponse(
                "a folded length", "HTTP/1.1 200 OK\r\nA: b\r\nContent-Length: 1\r\n 0\r\n\r\n", .badServerResponse,
                .cannotParseResponse),
            InvalidResponse(
                "a blank before the colon", "HTTP/1.1 200 OK\r\nContent-Length : 0\r\n\r\n", .badServerResponse,
                .cannotParseResponse),
            InvalidResponse(
                "two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
                .badServerResponse,
                .cannotParseResponse),
            InvalidResponse(
                "a length and chunks",
                "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                .badServerResponse,
                .cannotParseResponse),
            InvalidResponse(
                "a negative length", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", .badServerResponse,
                .cannotParseResponse),
            InvalidResponse(
                "a length that is none", "HTTP/1.1 200 OK\r\nContent-Length: 0x10\r\n\r\n", .badServerResponse,
                .cannotParseResponse),
            InvalidResponse(
                "a length beyond all", "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
                .badServerResponse, .cannotParseResponse),
            InvalidResponse(
                "an unknown coding", "HTTP/1.1 200 OK\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
                .badServerResponse, .cannotParseResponse),
            InvalidResponse(
                "a coding put on twice", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
                .badServerResponse, .cannotParseResponse),
            InvalidResponse(
                "a chunk beyond all", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
                .badServerResponse, .cannotParseResponse),
            InvalidResponse(
                "a chunk that is none", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\nabc\r\n",
                .badServerResponse, .cannotParseResponse),
            InvalidResponse(
                "a chunk that is longer", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n0\r\n\r\n",
                .badServerResponse, .cannotParseResponse),
            InvalidResponse(
                "no last chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
                .networkConnectionLost),
            InvalidResponse("too little", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", .networkConnectionLost),
            InvalidResponse(
                "an upgrade that nobody asked for",
                "HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n", .badServerResponse,
                .cannotParseResponse),
            InvalidResponse("no final answer", "HTTP/1.1 100 Continue\r\n\r\n", .networkConnectionLost),
        ]
    }

    @Test(.onlyWithHTTP11, arguments: InvalidResponse.all)
    func invalidResponseFailsTheLoad(_ vector: InvalidResponse) async throws {
        let server = try await WebServer(["/": vector.answer])
        let session = URLSession.test()
        let loaded = try await session.load(server.url())
        let code = try #require(loaded.code)
        #expect(vector.codes.contains(code), "\(code)")
        #expect(loaded.data == nil)
        let error = try #require(loaded.error as? URLError)
        #expect(
            error.failingURL == server.url()
                && error.userInfo["NSErrorFailingURLStringKey"] as? String == server.url().absoluteString)
        // A sentence, without the names of our own types and cases.
        #expect(error.localizedDescription.hasSuffix("."))
        #expect(!error.localizedDescription.contains("Violation") && !error.localizedDescription.contains("("))
        // The next load is none the worse for it.
        server.on("/well", .text("well"))
        #expect(try await session.load(server.url("/well")).text == "well")
        session.invalidateAndCancel()
    }

    @Test(.onlyWithHTTP11, arguments: InvalidResponse.all)
    func invalidResponseGivesNoDownload(_ vector: InvalidResponse) async throws {
        let server = try await WebServer(["/": vector.answer])
        let session = URLSession.test()
        let outcome = Outcome<Bool>()
        session.downloadTask(with: server.url()) { outcome.give($0 == nil && $2 is URLError) }.resume()
        #expect(try await outcome.value())
        session.invalidateAndCancel()
    }

    @Test func unusualResponseIsAccepted() async throws {
        let answers: [String: Answer] = [
            "/999": .raw("HTTP/1.1 999 Wrong Code\r\nodd: yes\r\n\r\n").closing,
            "/nolength": .raw("HTTP/1.1 200 OK\r\n\r\nno length at all").closing,
            "/noreason": .raw("HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok"),
            "/more": .raw("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok and more than that"),
            "/empty": .raw("HTTP/1.1 200 OK\r\nX-Empty:\r\nContent-Length: 2\r\n\r\nok"),
            "/extension": .raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;a=b\r\nok\r\n0\r\nX: y\r\n\r\n"),
        ]
        let server = try await WebServer(answers)
        let session = URLSession.test()
        for path in answers.keys.sorted() {
            let loaded = try await session.load(server.url(path))
            #expect(loaded.error == nil && loaded.data != nil, "\(path)")
            #expect(loaded.status == (path == "/999" ? 999 : 200))
        }
        session.invalidateAndCancel()
    }

    @Test(.onlyWithHTTP11) func endlessHeadFailsTheLoad() async throws {
        let server = try await WebServer([
            "/fields": .raw(
                "HTTP/1.1 200 OK\r\n"
                    + String(repeating: "X-A: \(String(repeating: "b", count: 90))\r\n", count: 50_000)),
            "/field": .raw("HTTP/1.1 200 OK\r\nX-A: " + String(repeating: "b", count: 4 << 20)),
            "/continue": .raw(String(repeating: "HTTP/1.1 100 Continue\r\n\r\n", count: 10_000)),
            "/hints": .raw(String(repeating: "HTTP/1.1 103 Hints\r\nLink: <a>\r\n\r\n", count: 10_000)),
        ])
        let session = URLSession.test()
        for path in ["/fields", "/field", "/continue", "/hints"] {
            let loaded = try await session.load(server.url(path))
            #expect(loaded.code == .dataLengthExceedsMaximum, "\(path)")
        }
        session.invalidateAndCancel()
    }

    @Test func decodedContentIsBounded() async throws {
        // 1 GiB of zeros in about 1 MiB: a whole one is refused or given out bit by bit, never held.
        let piece = Coded.deflated([UInt8](repeating: 0, count: 8 << 20), .gzip)
        let server = try await WebServer()
        server.on("/", .response(200, ["Content-Encoding: gzip"], (0..<128).flatMap { _ in piece }))
        let session = URLSession.test()
        let (bytes, _) = try await session.bytes(from: server.url())
        var count = 0
        for try await byte in bytes {
            if byte != 0 { break }
            count += 1
            if count == 100_000 { break }
        }
        #expect(count == 100_000)
        bytes.task.cancel()
        session.invalidateAndCancel()
    }

    @Test func brokenCodingFailsTheLoad() async throws {
        let good = Coded.gzip(String(repeating: "words and words ", count: 1000))
        let body = Array(good.bytes.drop { $0 != 0x1F })
        let cases: [String: Answer] = [
            "/none": .response(200, ["Content-Encoding: gzip"], "this is no gzip".utf8),
            "/short": .response(200, ["Content-Encoding: gzip"], body.dropLast(9)),
            "/sum": .response(200, ["Content-Encoding: gzip"], body.dropLast(8) + [1, 2, 3, 4, 5, 6, 7, 8]),
            "/deflate": .response(200, ["Content-Encoding: deflate"], [0xFF, 0xFF, 0xFF]),
        ]
        let server = try await WebServer(cases)
        let session = URLSession.test()
        for path in cases.keys {
            let loaded = try await session.load(server.url(path))
            #expect([.cannotDecodeContentData, .cannotDecodeRawData].contains(loaded.code), "\(path)")
            #expect(loaded.data == nil)
        }
        session.invalidateAndCancel()
    }

    @Test(.onlyPlain("the connection may set secure cookies"))
    func cookieForAnotherHostIsNotSet() async throws {
        let lines = [
            "a=1; Domain=other.test", "b=2; Domain=.test", "c=3; Domain=localhost", "__Secure-d=4; Path=/",
            "__Host-e=5; Path=/; Secure; Domain=127.0.0.1", "=", ";;;", "\u{1}=x",
        ]
        let server = try await WebServer()
        server.on("/", .text("hello", lines.dropLast().map { "Set-Cookie: \($0)" }))
        let session = URLSession.test()
        _ = try await session.load(server.url())
        #expect(session.configuration.httpCookieStorage?.cookies ?? [] == [])
        session.invalidateAndCancel()
    }
}
