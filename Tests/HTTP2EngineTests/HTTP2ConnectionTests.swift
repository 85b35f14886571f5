import HTTP2Engine
import Testing

@Suite("HTTP/2 between two engines")
struct HTTP2ConnectionTests {
    @Test func clientBeginsWithThePrefaceAndItsSettings() throws {
        let output = try Endpoint(.client).output()
        #expect(output.starts(with: Frame.preface))
        // Type 4 on stream 0; push (2) is off (RFC 9113 §3.4, §6.5.2).
        #expect(output[Frame.preface.count + 3] == 4)
        let payload = output[(Frame.preface.count + 9)...]
        #expect(payload.indices.contains { payload[$0...].starts(with: [0, 2, 0, 0, 0, 0]) })
    }

    @Test func serverBeginsWithItsSettings() throws {
        let output = try Endpoint(.server).output()
        #expect(Array(output[3..<9]) == [4, 0, 0, 0, 0, 0])
    }

    @Test(arguments: [1, 7, 1000, Int.max])
    func requestAndResponseCarryFieldsBodiesAndTrailers(_ split: Int) throws {
        let pair = try Pair()
        let stream = try pair.client.connection.request(Pair.post, endsOutput: false)
        let upload = (0..<100_000).map { UInt8(truncatingIfNeeded: $0) }
        try pair.client.connection.send(stream, upload.span.bytes)
        try pair.client.connection.endOutput(stream)
        pair.exchange(split: split)
        #expect(pair.server.events.contains(.head(stream, Pair.post, isLast: false)))
        #expect(pair.server.events.contains(.inputEnded(stream)) && pair.server.bodies[stream] == upload)

        try pair.server.connection.respond(stream, HTTP2FieldBlock([(":status", "103")]), endsOutput: false)
        try pair.server.connection.respond(stream, Pair.ok, endsOutput: false)
        try pair.server.connection.send(stream, Array("answer".utf8).span.bytes)
        try pair.server.connection.endOutput(stream, trailers: HTTP2FieldBlock([("checksum", "1")]))
        pair.exchange(split: split)
        let events = pair.client.events.filter { $0 != .settings && $0 != .outputDrained(stream) }
        #expect(
            events == [
                .informational(stream, HTTP2FieldBlock([(":status", "103")])), .head(stream, Pair.ok, isLast: false),
                .trailers(stream, HTTP2FieldBlock([("checksum", "1")])), .closed(stream, .noError),
            ])
        #expect(pair.client.bodies[stream] == Array("answer".utf8))
        #expect(pair.client.connection.openStreams == 0 && pair.server.connection.openStreams == 0)
    }

    @Test func headWithoutABodyIsTheLast() throws {
        let pair = try Pair()
        let stream = try pair.client.connection.request(Pair.get, endsOutput: true)
        pair.exchange()
        #expect(pair.server.events.contains(.head(stream, Pair.get, isLast: true)))
        try pair.server.connection.respond(stream, HTTP2FieldBlock([(":status", "204")]), endsOutput: true)
        pair.exchange()
        #expect(pair.client.events.contains(.head(stream, HTTP2FieldBlock([(":status", "204")]), isLast: true)))
        #expect(pair.client.events.last == .closed(stream, .noError))
    }

    @Test func fieldNamesAreSentInLowerCase() throws {
        let pair = try Pair()
        var fields = Pair.get
        fields.append(name: "X-Mixed-Case", value: "Value", isSensitive: true)
        _ = try pair.client.connection.request(fields, endsOutput: true)
        pair.exchange()
        let head = try #require(pair.server.heads.first)
        #expect(head.first("x-mixed-case").map { Array($0) } == Array("Value".utf8))
        #expect(head.isSensitive(at: 4) && !head.isSensitive(at: 3))
    }

    /// libnghttp2 sends 64 KiB by default.
    @Test func largeHeadIsSentInContinuations() throws {
        let pair = try Pair()
        var fields = Pair.get
        for name in ["a", "b", "c"] { fields.append(name: name, value: String(repeating: "a", count: 60_000)) }
        let stream = try pair.client.connection.request(fields, endsOutput: true)
        pair.exchange()
        #expect(pair.server.heads == [fields])
        try pair.server.connection.respond(stream, Pair.ok, endsOutput: true)
        pair.exchange()
        #expect(pair.client.events.last == .closed(stream, .noError))
    }

    @Test func headBeyondTheLimitIsRefusedWhenItIsGiven() throws {
        let pair = try Pair()
        var large = HTTP2FieldBlock()
        for _ in 0..<5 { large.append(name: "a", value: String(repeating: "v", count: 60_000)) }
        #expect(throws: HTTP2UsageError.headTooLarge) { try pair.client.connection.request(large, endsOutput: true) }
        let stream = try pair.client.connection.request(Pair.get, endsOutput: true)
        pair.exchange()
        #expect(throws: HTTP2UsageError.headTooLarge) {
            try pair.server.connection.respond(stream, large, endsOutput: true)
        }
        try pair.server.connection.respond(stream, Pair.ok, endsOutput: false)
        #expect(throws: HTTP2UsageError.headTooLarge) {
            try pair.server.connection.endOutput(stream, trailers: large)
        }
        try pair.server.connection.endOutput(stream)
        pair.exchange()
        #expect(pair.client.events.last == .closed(stream, .noError) && pair.client.failure == nil)
    }

    /// The server answers a stream that the client resets meanwhile.
    @Test func responseToAStreamThatIsResetMeanwhileIsDropped() throws {
        let pair = try Pair()
        let stream = try pair.client.connection.request(Pair.get, endsOutput: true)
        pair.exchange()
        pair.client.connection.reset(stream, .cancel)
        pair.server.receive(pair.client.output())
        #expect(throws: HTTP2UsageError.noSuchStream) {
            try pair.server.connection.respond(stream, Pair.ok, endsOutput: true)
        }
        #expect(pair.server.events.filter { $0 == .closed(stream, .cancel) }.count == 1)
        pair.exchange()
        #expect(pair.client.failure == nil && pair.server.failure == nil)
    }

    @Test func unconsumedStreamDoesNotStopOthers() throws {
        var settings = HTTP2Settings()
        settings.streamWindow = 100_000
        let pair = try Pair(client: settings)
        pair.client.consumes = false
        let slow = try pair.client.connection.request(Pair.get, endsOutput: true)
        pair.exchange()
        let body = [UInt8](repeating: 7, count: 1_000_000)
        try pair.server.connection.respond(slow, Pair.ok, endsOutput: false)
        let queued = try pair.server.connection.send(slow, body.span.bytes)
        #expect(queued == body.count)
        try pair.server.connection.endOutput(slow)
        pair.exchange()
        #expect(pair.client.bodies[slow]?.count == 100_000)
        #expect(pair.server.connection.queuedBytes(of: slow) == 900_000)

        let quick = try pair.client.connection.request(Pair.get, endsOutput: true)
        pair.exchange()
        try pair.server.connection.respond(quick, Pair.ok, endsOutput: false)
        try pair.server.connection.send(quick, [UInt8](repeating: 7, count: 90_000).span.bytes)
        try pair.server.connection.endOutput(quick)
        pair.exchange()
        #expect(pair.client.events.last == .closed(quick, .noError))

        pair.client.consumes = true
        pair.client.connection.consume(slow, 100_000)
        pair.exchange()
        #expect(pair.client.bodies[slow]?.count == body.count && pair.client.events.last == .closed(slow, .noError))
    }

    @Test func windowOfAStreamGrows() throws {
        var settings = HTTP2Settings()
        settings.streamWindow = 1000
        let pair = try Pair(client: settings)
        pair.client.consumes = false
        let stream = try pair.client.connection.request(Pair.get, endsOutput: true)
        pair.exchange()
        pair.client.connection.setWindow(of: stream, to: 50_000)
        try pair.server.connection.respond(stream, Pair.ok, endsOutput: false)
        try pair.server.connection.send(stream, [UInt8](repeating: 1, count: 60_000).span.bytes)
        pair.exchange()
        #expect(pair.client.bodies[stream]?.count == 50_000)
    }

    @Test func drainedOutputIsReported() throws {
        let pair = try Pair()
        let stream = try pair.client.connection.request(Pair.post, endsOutput: false)
        pair.exchange()
        #expect(!pair.client.events.contains(.outputDrained(stream)))
        try pair.client.connection.send(stream, [1, 2, 3].span.bytes)
        pair.exchange()
        #expect(pair.client.events.filter { $0 == .outputDrained(stream) }.count == 1)
        #expect(pair.client.connection.queuedBytes(of: stream) == 0)
    }

    @Test func resetEndsOneStreamWithItsCode() throws {
        let pair = try Pair()
        let first = try pair.client.connection.request(Pair.post, endsOutput: false)
        let second = try pair.client.connection.request(Pair.get, endsOutput: true)
        pair.exchange()
        pair.client.connection.reset(first, .cancel)
        pair.exchange()
        #expect(pair.server.events.last == .closed(first, .cancel))
        #expect(throws: HTTP2UsageError.noSuchStream) {
            try pair.server.connection.respond(first, Pair.ok, endsOutput: true)
        }
        pair.server.connection.reset(second, .refusedStream)
        pair.exchange()
        #expect(pair.client.events.last == .closed(second, .refusedStream))
        #expect(throws: HTTP2UsageError.noSuchStream) { try pair.client.connection.endOutput(first) }
    }

    @Test(arguments: [false, true])
    func goAwayRefusesRequestsAfterTheLastStream(_ isWritten: Bool) throws {
        let pair = try Pair()
        let first = try pair.client.connection.request(Pair.get, endsOutput: true)
        pair.exchange()
        pair.server.connection.goAway()
        let second = try pair.client.connection.request(Pair.get, endsOutput: true)
        let early = isWritten ? pair.client.output() : []
        pair.client.receive(pair.server.output())
        pair.server.receive(early)
        #expect(pair.client.events.contains(.goAway(lastStream: first, .noError)))
        pair.exchange()
        #expect(pair.client.events.contains(.closed(second, .refusedStream)))
        #expect(!pair.client.connection.acceptsRequests)
        #expect(throws: HTTP2UsageError.closing) { try pair.client.connection.request(Pair.get, endsOutput: true) }
        try pair.server.connection.respond(first, Pair.ok, endsOutput: true)
        pair.exchange()
        #expect(pair.client.events.last == .closed(first, .noError) && pair.client.failure == nil)
    }

    @Test func streamsBeyondThePeersLimitWait() throws {
        var settings = HTTP2Settings()
        settings.maximumConcurrentStreams = 2
        let pair = try Pair(server: settings)
        pair.exchange()
        #expect(pair.client.connection.maximumPeerStreams == 2)
        let streams = try (0..<3).map { _ in try pair.client.connection.request(Pair.get, endsOutput: true) }
        pair.exchange()
        #expect(pair.server.heads.count == 2)
        try pair.server.connection.respond(streams[0], Pair.ok, endsOutput: true)
        pair.exchange()
        #expect(pair.server.heads.count == 3)
    }

    @Test func pingIsAnswered() throws {
        let pair = try Pair()
        pair.client.connection.ping(0x0102_0304_0506_0708)
        pair.exchange()
        #expect(pair.client.events.last == .pong(0x0102_0304_0506_0708))
    }

    @Test func priorityUpdateNamesTheStream() throws {
        let pair = try Pair()
        let stream = try pair.client.connection.request(Pair.get, endsOutput: true)
        pair.exchange()
        pair.client.connection.updatePriority(of: stream, to: "u=1")
        // Type 0x10 on stream 0 (RFC 9218 §7.1).
        #expect(pair.client.output() == Frame.frame(0x10, 0, 0, Frame.four(UInt32(stream)) + Array("u=1".utf8)))
    }

    /// RFC 7541 C.4.1: Huffman-coded fields of a first request.
    @Test func headOfTheSpecificationIsRead() throws {
        let server = try Endpoint(.server)
        let block: [UInt8] = [
            0x82, 0x86, 0x84, 0x41, 0x8C, 0xF1, 0xE3, 0xC2, 0xE5, 0xF2, 0x3A, 0x6B, 0xA0, 0xAB, 0x90, 0xF4, 0xFF,
        ]
        server.receive(Frame.preface + Frame.settings + Frame.frame(1, 5, 1, block))
        #expect(
            server.heads == [
                HTTP2FieldBlock([
                    (":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "www.example.com"),
                ])
            ])
    }
}
