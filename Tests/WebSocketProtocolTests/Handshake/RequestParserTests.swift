import TestSupport
import Testing
import WebSocketProtocol

@Suite("Head of a request, RFC 9112 §2 to §5")
struct RequestParserTests {
    /// RFC 6455 §1.2.
    static let example = """
        GET /chat HTTP/1.1\r
        Host: server.example.com\r
        Upgrade: websocket\r
        Connection: Upgrade\r
        Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r
        Origin: http://example.com\r
        Sec-WebSocket-Protocol: chat, superchat\r
        Sec-WebSocket-Version: 13\r
        \r

        """

    private static func wellFormed(_ fields: String) -> String { "GET / HTTP/1.1\r\n" + fields + "\r\n" }

    @Test func exampleOfTheRFCIsReadHoweverItArrives() {
        let bytes = Array(Self.example.utf8)
        let whole = HeadFeeding.request([bytes])
        #expect(whole.head?.method == "GET")
        #expect(whole.head?.target == "/chat")
        #expect(whole.head?.version == .http11)
        #expect(whole.head?.fields.all.count == 7)
        #expect(whole.head?.fields.all.first == HTTPField("Host", "server.example.com"))
        #expect(whole.head?.fields["sec-websocket-KEY"] == "dGhlIHNhbXBsZSBub25jZQ==")
        #expect(whole.consumed == bytes.count)
        #expect(HeadFeeding.request(bytes.singleBytes) == whole)
        for cut in 0...bytes.count {
            #expect(HeadFeeding.request([Array(bytes[..<cut]), Array(bytes[cut...])]) == whole)
        }
    }

    @Test func bytesAfterTheHeadAreNotConsumed() {
        let bytes = Array(Self.example.utf8)
        let followed = HeadFeeding.request([bytes + [0x81, 0x85, 0x0A, 0x00]])
        #expect(followed.head != nil)
        #expect(followed.consumed == bytes.count)
    }

    @Test func headWaitsForItsEmptyLine() {
        let bytes = Array(Self.example.utf8)
        for length in 0..<bytes.count {
            let outcome = HeadFeeding.request([Array(bytes[..<length])])
            #expect(outcome == HeadOutcome(consumed: length))
        }
    }

    @Test func parserIsReadyForTheNextHead() throws {
        var parser = RequestParser()
        let bytes = Array("GET /a HTTP/1.1\r\nA: 1\r\n\r\nGET /b HTTP/1.1\r\n\r\n".utf8)
        var consumed = 0
        #expect(try parser.parse(bytes.span.bytes, consumed: &consumed)?.target == "/a")
        let second = try #require(try parser.parse(bytes.span.bytes, consumed: &consumed))
        #expect(second.target == "/b")
        #expect(second.fields == HTTPFields())
        #expect(consumed == bytes.count)
    }

    /// RFC 9112 §2.2.
    @Test func emptyLinesBeforeARequestAreSkipped() {
        let request = Array("\r\n\r\nGET /a HTTP/1.1\r\nHost: a\r\n\r\n".utf8)
        let whole = HeadFeeding.request([request])
        #expect(whole.head?.target == "/a" && whole.head?.fields.all.count == 1)
        #expect(whole.consumed == request.count)
        #expect(HeadFeeding.request(request.singleBytes) == whole)
        let endless = HeadFeeding.request(String(repeating: "\r\n", count: 20), limits: HeadLimits(byteCount: 30))
        #expect(endless.violation == .tooLong(limit: 30))
    }

    /// RFC 9110 §5.5: obs-text is opaque and is forwarded unchanged.
    @Test(arguments: [[0xE9], [0xC3, 0xA9], [0xFF, 0x80, 0x41], [0xC0, 0xAE]] as [[UInt8]])
    func aFieldIsWrittenWithTheBytesThatWereRead(_ bytes: [UInt8]) throws {
        let line = Array("Cookie: a".utf8) + bytes + Array("\r\n".utf8)
        let request = Array("GET / HTTP/1.1\r\nHost: a\r\n".utf8) + line + Array("\r\n".utf8)
        let head = try #require(HeadFeeding.request([request]).head)
        let fields = head.fields.fields("cookie")
        #expect(fields.count == 1)
        let rendered = ClientHandshake(authority: "b", target: "/", fields: fields).rendered(nonce: [])
        #expect(rendered.indices.contains { rendered[$0...].starts(with: line) })
        #expect(fields.first?.value.unicodeScalars.allSatisfy { $0 != "\u{FFFD}" } == true)
    }

    static let refused: [(text: String, violation: HeadViolation)] = [
        ("GET /\r\n\r\n", .malformedStartLine), ("GET  / HTTP/1.1\r\n\r\n", .malformedStartLine),
        ("GET / HTTP/1.1 \r\n\r\n", .malformedStartLine), (" GET / HTTP/1.1\r\n\r\n", .malformedStartLine),
        ("GET / http/1.1\r\n\r\n", .malformedStartLine), ("GET / HTTP/11\r\n\r\n", .malformedStartLine),
        ("GET / HTTP/1.10\r\n\r\n", .malformedStartLine), ("GET /\u{E9} HTTP/1.1\r\n\r\n", .malformedStartLine),
        ("G(T / HTTP/1.1\r\n\r\n", .malformedStartLine), ("GET\t/\tHTTP/1.1\r\n\r\n", .malformedStartLine),
        ("GET  HTTP/1.1\r\n\r\n", .malformedStartLine), ("\nGET / HTTP/1.1\r\n\r\n", .bareLineFeed),
        ("\r\n GET / HTTP/1.1\r\n\r\n", .malformedStartLine),
        ("GET / HTTP/1.1\nA: 1\n\n", .bareLineFeed), ("GET / HTTP/1.1\rA", .bareCarriageReturn),
        ("GET / HTTP/1.1\r\r\n", .bareCarriageReturn), (Self.wellFormed("A: b\rc\r\n"), .bareCarriageReturn),
        (Self.wellFormed("A: b\nc: d\r\n"), .bareLineFeed), (Self.wellFormed("A: b\0c\r\n"), .controlCharacter),
        (Self.wellFormed("A: b\u{7F}\r\n"), .controlCharacter),
        (Self.wellFormed("A: \u{1B}[0m\r\n"), .controlCharacter),
        (Self.wellFormed("A: b\r\n c\r\n"), .foldedField), (Self.wellFormed(" A: b\r\n"), .foldedField),
        (Self.wellFormed("A: b\r\n\tc: d\r\n"), .foldedField), (Self.wellFormed("A : b\r\n"), .whitespaceBeforeColon),
        (Self.wellFormed("A\t: b\r\n"), .whitespaceBeforeColon), (Self.wellFormed(": b\r\n"), .malformedFieldName),
        (Self.wellFormed("A\r\n"), .malformedFieldName), (Self.wellFormed("A@b: c\r\n"), .malformedFieldName),
        (Self.wellFormed("\u{E9}: c\r\n"), .malformedFieldName), ("\u{16}\u{3}\u{1}", .controlCharacter),
    ]

    @Test(arguments: refused)
    func malformedRequestIsRefused(text: String, violation: HeadViolation) {
        let whole = HeadFeeding.request(text)
        #expect(whole.violation == violation)
        #expect(violation.status == 400)
        #expect(HeadFeeding.request(Array(text.utf8).singleBytes) == whole)
    }

    /// The parser checks eight bytes at a time: an invalid byte is found at each of the eight places.
    @Test func everyByteIsCheckedInEveryPlace() throws {
        for byte in UInt8.min...UInt8.max {
            for place in 0..<17 {
                let before = Array("GET / HTTP/1.1\r\nHost: a\r\nA: b".utf8) + Array(repeating: 0x63, count: place)
                let head = before + [byte] + Array("ddddddddd\r\n\r\n".utf8)
                var parser = RequestParser()
                var consumed = 0
                let violation: HeadViolation?
                do {
                    _ = try parser.parse(head.span.bytes, consumed: &consumed)
                    violation = nil
                } catch {
                    violation = error
                }
                // RFC 9110 §5.5: field values hold no control characters but HTAB; RFC 9112 §2.2 on CR and LF alone.
                let expected: HeadViolation? =
                    switch byte {
                    case 0x0A: .bareLineFeed
                    case 0x0D: .bareCarriageReturn
                    case 0x09: nil
                    case 0x00..<0x20, 0x7F: .controlCharacter
                    default: nil
                    }
                #expect(violation == expected, "byte \(byte) at \(place)")
            }
        }
    }

    @Test func refusedHeadIsRefusedAgain() {
        var parser = RequestParser()
        for bytes in ["\0", Self.example] {
            var consumed = 0
            #expect(throws: HeadViolation.controlCharacter) {
                try parser.parse(Array(bytes.utf8).span.bytes, consumed: &consumed)
            }
        }
    }

    @Test func valueLosesTheWhitespaceAroundIt() {
        let head = HeadFeeding.request(Self.wellFormed("A:b\r\nB: \t c d \t\r\nC:\r\nD:  \r\nE: x\ty\r\nF: a:b\r\n"))
            .head
        #expect(head?.fields.all.map(\.value) == ["b", "c d", "", "", "x\ty", "a:b"])
    }

    @Test func valueIsUTF8OrLatin1() {
        let head =
            Array("GET / HTTP/1.1\r\nA: ".utf8) + [0xC3, 0xA9] + Array("\r\nB: ".utf8) + [0xE9] + Array("\r\n\r\n".utf8)
        #expect(HeadFeeding.request([head]).head?.fields.all.map(\.value) == ["é", "é"])
    }

    @Test func bytesOfTheHeadAreLimited() {
        let bytes = Array(Self.example.utf8)
        #expect(HeadFeeding.request([bytes], limits: HeadLimits(byteCount: bytes.count)).head != nil)
        let short = HeadLimits(byteCount: bytes.count - 1)
        for pieces in [[bytes], bytes.singleBytes] {
            let outcome = HeadFeeding.request(pieces, limits: short)
            #expect(outcome.violation == .tooLong(limit: bytes.count - 1))
            #expect(outcome.violation?.status == 431)
        }
        let endless = HeadFeeding.request("GET /" + String(repeating: "a", count: 20000))
        #expect(endless == HeadOutcome(violation: .tooLong(limit: 16384), consumed: 16385))
    }

    @Test func numberOfFieldsIsLimited() {
        let hundred = String(repeating: "A: b\r\n", count: 100)
        #expect(HeadFeeding.request(Self.wellFormed(hundred)).head?.fields.all.count == 100)
        let outcome = HeadFeeding.request(Self.wellFormed(hundred + "A: b\r\n"))
        #expect(outcome.violation == .tooManyFields(limit: 100))
        #expect(outcome.violation?.status == 431)
        #expect(HeadFeeding.request(Self.wellFormed("A: b\r\n"), limits: HeadLimits(fieldCount: -1)).head == nil)
    }

    @Test(arguments: UInt64(0)..<500)
    func anyBytesGiveTheSameInAnySplit(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var bytes = Array(Self.example.utf8) + [0x81, 0x80]
        for _ in 0..<Int.random(in: 0...3, using: &generator) {
            let position = Int.random(in: 0..<bytes.count, using: &generator)
            switch Int.random(in: 0...2, using: &generator) {
            case 0: bytes[position] = [0x00, 0x0A, 0x0D, 0x20, 0x3A, 0x41, 0xE9].randomElement(using: &generator) ?? 0
            case 1: bytes.remove(at: position)
            default: bytes.insert(contentsOf: generator.bytes(2), at: position)
            }
        }
        let limits = HeadLimits(byteCount: Int.random(in: 150...400, using: &generator), fieldCount: 7)
        let whole = HeadFeeding.request([bytes], limits: limits)
        for longest in [1, 4, 30] {
            let pieces = bytes.cut(generator.cuts(of: bytes.count, longest: longest))
            #expect(HeadFeeding.request(pieces, limits: limits) == whole, "seed \(seed), pieces up to \(longest)")
        }
    }
}
