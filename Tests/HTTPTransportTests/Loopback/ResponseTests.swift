import HTTPTransport
import StreamTransport
import Testing
import WireText

@Suite("Responses over a real connection, RFC 9112 §6, §7", .timeLimit(.minutes(20)))
struct ResponseTests {
    private let pool = ConnectionPool()

    /// One request and one response in these pieces; then the server closes if `closes`.
    private func get(
        _ pieces: [String], method: String = "GET", fields: [(String, String)] = [], closes: Bool = false
    ) async throws -> ExchangeRecorder.Entry {
        let script: [RawServer.Step] = [.request] + pieces.map { .send($0) } + (closes ? [.finish] : [])
        let server = try await RawServer([script])
        return await self.pool.perform(server.request(method, fields))
    }

    private func get(_ text: String, method: String = "GET", closes: Bool = false) async throws
        -> ExchangeRecorder.Entry
    {
        try await self.get([text], method: method, closes: closes)
    }

    @Test func headContentAndEndAreDelivered() async throws {
        let recorder = try await self.get("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A: b\r\n\r\nhello")
        #expect(
            recorder.head
                == ResponseHead(
                    status: 200, reason: "OK",
                    fields: FieldLines([FieldLine("Content-Length", "5"), FieldLine("X-A", "b")])))
        #expect(recorder.framing == .length(5))
        #expect(recorder.text == "hello")
        #expect(recorder.trailers == [])
        #expect(recorder.ends == 1)
    }

    @Test func chunksAreJoinedAndTrailersDelivered() async throws {
        let recorder = try await self.get(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n1\r\n!\r\n0\r\nDigest: x\r\n\r\n")
        #expect(recorder.text == "hello!")
        #expect(recorder.trailers == [FieldLine("Digest", "x")])
    }

    @Test func foldedTrailerIsOneLine() async throws {
        let recorder = try await self.get(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX: a\r\n b\r\n\r\n")
        #expect(recorder.text == "ok")
        #expect(recorder.trailers == [FieldLine("X", "a b")])
    }

    @Test func laterMinorVersionIsTakenForHTTP11() async throws {
        let recorder = try await self.get(
            "HTTP/1.2 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n")
        #expect(recorder.text == "ok")
    }

    @Test func contentWithoutALengthEndsWithTheConnection() async throws {
        let recorder = try await self.get("HTTP/1.0 200 OK\r\n\r\nall of it", closes: true)
        #expect(recorder.text == "all of it")
        #expect(recorder.trailers == [])
    }

    @Test(arguments: [
        ("HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n"), ("GET", "HTTP/1.1 204 No Content\r\n\r\n"),
        ("GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\n\r\n"),
        ("HEAD", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
    ])
    func responseWithoutContentEndsAtOnce(_ method: String, _ answer: String) async throws {
        let server = try await RawServer([[.request, .send(answer), .request, .send(answer)]])
        for _ in 0..<2 {
            let recorder = await self.pool.perform(server.request(method))
            #expect(recorder.framing == ResponseFraming.none)
            #expect(recorder.trailers == [])
        }
        #expect(server.connections == 1)
    }

    @Test func informationalHeadsAreForwarded() async throws {
        let recorder = try await self.get(
            [
                "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 102 P\r\n\r\n",
                "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
            ])
        #expect(recorder.informational == [103, 102])
        #expect(recorder.head?.status == 200)
    }

    @Test func bytesOnTheWireAreCounted() async throws {
        let first = "HTTP/1.1 103 Early Hints\r\n\r\n"
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        let body = "5\r\nhello\r\n0\r\n\r\n"
        let server = try await RawServer([[.request, .send(first + head + body)]])
        let recorder = await self.pool.perform(server.request())
        let metrics = try #require(recorder.metrics)
        #expect(metrics.responseHeadBytes == Int64((first + head).utf8.count))
        #expect(metrics.responseBodyBytes == Int64(body.utf8.count))
        #expect(metrics.responseContentBytes == 5)
        #expect(metrics.requestHeadBytes == Int64(server.received[0].utf8.count))
        #expect(metrics.requestBodyBytes == 0)
        let times = [
            metrics.fetchStart, metrics.timings.connectStart, metrics.timings.connectEnd, metrics.requestStart,
            metrics.requestEnd, metrics.responseStart, metrics.responseEnd,
        ].compactMap { $0 }
        #expect(times.count == 7)
        #expect(times == times.sorted())
        #expect(metrics.timings.secureStart == nil)
        #expect(metrics.timings.lookupStart == nil)
        #expect(metrics.connection?.peerAddress == .ipv4(address: 0x7F00_0001, port: server.port))
        #expect(metrics.connection?.localAddress != nil)
    }

    @Test func responseIsTheSameInEverySplit() async throws {
        let text =
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
            + "3\r\nabc\r\n2;x\r\nde\r\n0\r\nT: u\r\n\r\n"
        let bytes = Array(text.utf8)
        for size in [1, 2, 5, 17] {
            let pieces = stride(from: 0, to: bytes.count, by: size).map { start in
                RawServer.Step.sendBytes(Array(bytes[start..<min(bytes.count, start + size)]))
            }
            let server = try await RawServer([[.request] + pieces])
            let recorder = await self.pool.perform(server.request())
            #expect(recorder.text == "abcde", "pieces of \(size)")
            #expect(recorder.informational == [100])
            #expect(recorder.trailers == [FieldLine("T", "u")])
        }
    }

    /// Content that ends with the connection is complete only after an orderly end.
    @Test func resetDiffersFromTheEndOfTheContent() async throws {
        let read = Gate()
        let server = try await RawServer([
            [.request, .send("HTTP/1.0 200 OK\r\n\r\npart"), .wait(read), .reset]
        ])
        let recorder = ExchangeRecorder()
        let exchange = self.pool.exchange(server.request(), consumer: recorder)
        recorder.pull(.max, exchange)
        exchange.start()
        await recorder.contentCame.pass()
        read.open()
        #expect(await recorder.whole().failure == .truncated(received: 4, expected: nil, cause: .reset))
    }

    /// A truncated response of any framing is a failure that names the missing part.
    @Test(arguments: [
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "hello"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "5\r\nhello\r\n0\r\n\r\n"),
    ])
    func truncatedResponseIsNeverTakenForAShortOne(_ text: String, _ body: String) async throws {
        let bytes = Array((text + body).utf8)
        let headEnd = text.utf8.count
        for cut in 0..<bytes.count {
            let server = try await RawServer([[.request, .sendBytes(Array(bytes[..<cut])), .close]])
            var request = server.request("POST")
            request.body = .bytes([])
            let recorder = await self.pool.perform(request)
            switch recorder.failure {
            case .connectionLost(let loss)?:
                #expect(cut < headEnd, "cut at \(cut)")
                #expect(!loss.wasReused)
                #expect(loss.responseBegan == (cut > 0))
            case .truncated(let received, let expected, _)?:
                #expect(cut >= headEnd, "cut at \(cut)")
                #expect(received == Int64(recorder.content.count))
                #expect(expected == (text.contains("Length") ? 5 : nil))
            default: Issue.record("cut at \(cut): \(String(describing: recorder.end))")
            }
        }
    }

    @Test(arguments: [
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", ResponseViolation.twoFramings),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n", .twoFramings),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n", .twoFramings),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5, 6\r\n\r\n", .twoFramings),
        ("HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\n", .contentLength),
        ("HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n", .contentLength),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", .transferCoding),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: xchunked\r\n\r\n", .transferCoding),
        ("HTTP/1.1 200 OK\r\n b\r\n\r\n", .head(.foldedField)),
        ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n 0\r\n\r\n", .contentLength),
        ("HTTP/1.1 200 OK\r\nX : a\r\n\r\n", .head(.whitespaceBeforeColon)),
        ("HTTP/1.1 200 OK\r\nX: \0\r\n", .head(.controlCharacter)),
        ("SSH-2.0-OpenSSH\r\n", .statusLine(.malformedStartLine)), ("\0\0\u{18}\u{4}", .statusLine(.controlCharacter)),
        ("HTTP/2.0 200 OK\r\n\r\n", .statusLine(.malformedStartLine)),
        ("HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n", .upgrade),
    ])
    func ambiguousHeadIsRefused(_ text: String, _ violation: ResponseViolation) async throws {
        let recorder = try await self.get(text)
        #expect(recorder.failure == .violation(violation))
        #expect(recorder.head == nil)
    }

    @Test(arguments: [
        "x\r\n", "-1\r\n", "0x5\r\n", "5\nhello\n", "5 \r\nhello", "5\r\nhelloX", "FFFFFFFFFFFFFFFFF\r\n", "\r\n",
        "5\r\nhello\n0\n\n",
    ])
    func malformedChunkIsRefused(_ body: String) async throws {
        let recorder = try await self.get("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + body)
        guard case .violation? = recorder.failure else {
            Issue.record("\(String(describing: recorder.end))")
            return
        }
    }

    @Test func headWithoutAnEndIsStopped() async throws {
        var settings = PoolSettings()
        settings.limits.headBytes = 4096
        settings.limits.fieldCount = 20
        let pool = ConnectionPool(settings: settings)
        let line = "X-Field: " + String(repeating: "a", count: 500) + "\r\n"
        let heads = [
            (String(repeating: line, count: 20), HeadViolation.tooLong(limit: 4096)),
            (String(repeating: "A: b\r\n", count: 21) + "\r\n", .tooManyFields(limit: 20)),
        ]
        for (head, violation) in heads {
            let server = try await RawServer([[.request, .send("HTTP/1.1 200 OK\r\n" + head)]])
            let recorder = await pool.perform(server.request())
            #expect(recorder.failure == .violation(.head(violation)))
        }
    }

    @Test func informationalHeadsWithoutAnEndAreStopped() async throws {
        let hints = String(repeating: "HTTP/1.1 103 Early Hints\r\n\r\n", count: 40)
        let recorder = try await self.get(hints)
        #expect(recorder.failure == .violation(.tooManyInformationalHeads))
        #expect(recorder.informational.count <= MessageLimits().informationalHeads)
    }

    @Test func chunkExtensionsWithoutAnEndAreStopped() async throws {
        var settings = PoolSettings()
        settings.limits.framingBytes = 10_000
        let server = try await RawServer([
            [
                .request,
                .send(
                    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;" + String(repeating: "a", count: 400_000)),
            ]
        ])
        let recorder = await ConnectionPool(settings: settings).perform(server.request())
        #expect(recorder.failure == .violation(.framingWithoutContent))
    }
}
