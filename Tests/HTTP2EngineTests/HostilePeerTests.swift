import HTTP2Engine
import Testing

@Suite("HTTP/2 peers that break the rules")
struct HostilePeerTests {
    /// A client that has asked on stream 1 and has read the server's settings.
    private func client(_ settings: HTTP2Settings = HTTP2Settings()) throws -> Endpoint {
        let client = try Endpoint(.client, settings)
        _ = try client.connection.request(Pair.get, endsOutput: true)
        _ = client.output()
        client.receive(Frame.settings + Frame.settingsAnswer)
        _ = client.output()
        return client
    }

    private func server() throws -> Endpoint {
        let server = try Endpoint(.server)
        server.receive(Frame.preface + Frame.settings)
        _ = server.output()
        return server
    }

    private static let request =
        Frame.literal(":method", "GET") + Frame.literal(":scheme", "https") + Frame.literal(":path", "/")
        + Frame.literal(":authority", "a")

    private static let violations: [(name: String, bytes: [UInt8], code: HTTP2ErrorCode)] = [
        ("DATA on stream 0", Frame.frame(0, 0, 0, [1]), .protocolError),
        ("HEADERS on an even stream", Frame.frame(1, 5, 2, [0x88]), .protocolError),
        ("HEADERS on a stream that nobody opened", Frame.frame(1, 5, 9, [0x88]), .protocolError),
        ("DATA on a stream that nobody opened", Frame.frame(0, 0, 9, [1]), .protocolError),
        ("PUSH_PROMISE", Frame.frame(5, 4, 1, Frame.four(2) + [0x82]), .protocolError),
        ("a frame larger than allowed", Frame.frame(0, 0, 1, Frame.zeros(16_385)), .frameSizeError),
        ("SETTINGS with an odd length", Frame.frame(4, 0, 0, [0, 1, 0]), .frameSizeError),
        ("SETTINGS on a stream", Frame.frame(4, 0, 1, []), .protocolError),
        ("an initial window beyond 2^31 - 1", Frame.frame(4, 0, 0, [0, 4, 0x80, 0, 0, 0]), .flowControlError),
        ("WINDOW_UPDATE that overflows", Frame.frame(8, 0, 0, Frame.four(0x7FFF_FFFF)), .flowControlError),
        ("WINDOW_UPDATE of 0", Frame.frame(8, 0, 0, Frame.four(0)), .protocolError),
        ("an index outside the tables", Frame.frame(1, 4, 1, [0xFF, 0xFF, 0x7F]), .compressionError),
        ("CONTINUATION without a head", Frame.frame(9, 4, 1, []), .protocolError),
        (
            "another frame within a head", Frame.frame(1, 0, 1, []) + Frame.frame(6, 0, 0, Frame.zeros(8)),
            .protocolError
        ),
        ("PING of seven bytes", Frame.frame(6, 0, 0, Frame.zeros(7)), .frameSizeError),
        ("padding longer than the frame", Frame.frame(1, 0xC, 1, [9, 0x88]), .protocolError),
    ]

    @Test(arguments: Self.violations)
    func violationEndsTheConnectionWithItsCode(_ name: String, _ bytes: [UInt8], _ code: HTTP2ErrorCode) throws {
        let client = try self.client()
        client.receive(bytes)
        let output = client.output()
        client.receive([])
        guard case .violation(let found, let text) = client.failure else {
            Issue.record("\(name): \(client.events)")
            return
        }
        #expect(found == code && !text.isEmpty, "\(name): \(text)")
        // GOAWAY is the last thing written.
        #expect(output.count >= 17 && client.connection.isOver, "\(name)")
        #expect(throws: HTTP2UsageError.closing) { try client.connection.request(Pair.get, endsOutput: true) }
        client.receive(Frame.settings)
        #expect(client.events.last == .failed(.violation(found, text)))
    }

    private static let malformedHeads: [(name: String, block: [UInt8])] = [
        ("a field name in upper case", Frame.literal(":status", "200") + Frame.literal("Upper", "1")),
        ("a line feed in a value", Frame.literal(":status", "200") + Frame.literal("x", "a\nb")),
        ("a field of a connection", Frame.literal(":status", "200") + Frame.literal("connection", "close")),
        ("no status", Frame.literal("x", "1")),
        ("two statuses", Frame.literal(":status", "200") + Frame.literal(":status", "200")),
        ("a pseudo-header field after others", Frame.literal("x", "1") + Frame.literal(":status", "200")),
    ]

    @Test(arguments: Self.malformedHeads)
    func malformedHeadEndsItsStream(_ name: String, _ block: [UInt8]) throws {
        let client = try self.client()
        client.receive(Frame.frame(1, 4, 1, block))
        _ = client.output()
        client.receive([])
        #expect(client.heads.isEmpty && client.failure == nil, "\(name)")
        #expect(client.events.suffix(2) == [.malformed(1), .closed(1, .protocolError)], "\(name)")
    }

    /// A server that has not acknowledged our settings may not know yet that push is disabled.
    @Test func earlyPushIsRefused() throws {
        let client = try Endpoint(.client)
        _ = try client.connection.request(Pair.get, endsOutput: true)
        _ = client.output()
        client.receive(Frame.settings + Frame.frame(5, 4, 1, Frame.four(2) + Self.request))
        let reset = Frame.frame(3, 0, 2, Frame.four(HTTP2ErrorCode.cancel.rawValue))
        #expect(client.output().suffix(reset.count) == reset[...])
        #expect(client.failure == nil && client.heads.isEmpty && client.connection.openStreams == 1)
    }

    @Test func contentThatIsLongerThanAnnouncedEndsItsStream() throws {
        let client = try self.client()
        let head = Frame.literal(":status", "200") + Frame.literal("content-length", "3")
        client.receive(Frame.frame(1, 4, 1, head) + Frame.frame(0, 1, 1, [1, 2, 3, 4]))
        _ = client.output()
        client.receive([])
        #expect(client.events.suffix(2) == [.malformed(1), .closed(1, .protocolError)])
    }

    @Test func headBeyondTheLimitEndsOnlyItsStream() throws {
        var settings = HTTP2Settings()
        settings.maximumHeaderListSize = 1000
        let client = try self.client(settings)
        let head = Frame.literal(":status", "200") + Frame.literal("x", String(repeating: "a", count: 1000))
        client.receive(Frame.frame(1, 4, 1, head))
        _ = client.output()
        client.receive([])
        #expect(client.events.contains(.headTooLarge(1)) && client.heads.isEmpty && client.failure == nil)
        #expect(client.events.last == .closed(1, .internalError))
        #expect(try client.connection.request(Pair.get, endsOutput: true) == 3)
    }

    /// The peer fills frames of 16 KiB, the largest by default, up to the limit of 256 KiB or beyond.
    @Test(arguments: [(24, true), (40, false)])
    func headInManyFramesIsReadUpToTheLimit(_ fields: Int, _ isAccepted: Bool) throws {
        let client = try self.client()
        var head = Frame.literal(":status", "200")
        for number in 0..<fields { head += Frame.literal("x-\(number)", String(repeating: "a", count: 8_000)) }
        for start in stride(from: 0, to: head.count, by: 16_384) {
            let end = min(start + 16_384, head.count)
            let flags: UInt8 = (start == 0 ? 1 : 0) | (end == head.count ? 4 : 0)
            client.receive(Frame.frame(start == 0 ? 1 : 9, flags, 1, Array(head[start..<end])))
        }
        _ = client.output()
        client.receive([])
        #expect(client.failure == nil && client.heads.count == (isAccepted ? 1 : 0))
        #expect(client.events.contains(.headTooLarge(1)) == !isAccepted)
    }

    /// One entry of the table, named a hundred thousand times (RFC 7541 §7): 32 bytes and more for each byte sent.
    @Test func compressedBombIsStoppedAtTheLimit() throws {
        let client = try self.client()
        // With incremental indexing (RFC 7541 §6.2.1): then index 62 names it.
        let entry: [UInt8] = [0x40, 1, 0x78, 0x7F, 0xA1, 0x1E] + Array(repeating: 0x61, count: 4000)
        client.receive(Frame.frame(1, 0, 1, [0x88] + entry))
        client.receive(Frame.frame(9, 4, 1, Array(repeating: 0xBE, count: 16_000)))
        _ = client.output()
        client.receive([])
        #expect(client.events.contains(.headTooLarge(1)) && client.heads.isEmpty)
        #expect(client.events.filter { $0 == .headTooLarge(1) }.count == 1)
    }

    @Test func continuationFloodEndsTheConnection() throws {
        let client = try self.client()
        client.receive(Frame.frame(1, 0, 1, [0x88]))
        for _ in 0..<10_000 where client.failure == nil { client.receive(Frame.frame(9, 0, 1, [])) }
        #expect(client.failure == .flooded)
    }

    private static let floods: [(name: String, frame: [UInt8])] = [
        ("PING", Frame.frame(6, 0, 0, Frame.zeros(8))), ("SETTINGS", Frame.settings),
        ("empty DATA", Frame.frame(0, 0, 1, [])), ("WINDOW_UPDATE", Frame.frame(8, 0, 1, Frame.four(1))),
        ("PRIORITY", Frame.frame(2, 0, 7, Frame.four(0) + [1])),
        ("RST_STREAM", Frame.frame(3, 0, 1, Frame.four(8))),
        ("an unknown type", Frame.frame(0xFA, 0, 1, Frame.zeros(16_384))),
        ("an unknown type without a payload", Frame.frame(0xFA, 0, 0, [])),
        ("PRIORITY_UPDATE", Frame.frame(0x10, 0, 0, Frame.four(1) + Array("u=1".utf8))),
    ]

    @Test(arguments: Self.floods)
    func floodOfFramesWithoutContentEndsTheConnection(_ name: String, _ frame: [UInt8]) throws {
        let client = try self.client()
        client.receive(Frame.frame(1, 4, 1, [0x88]))
        let many = Array(repeatElement(frame, count: 100).joined())
        // The output is never written: the peer does not read.
        // The library does not report types that it does not know: only their bytes are limited.
        let settings = client.connection.settings
        let limit = frame[3] <= 9 ? settings.maximumIdleFrames : settings.maximumIdleBytes / frame.count
        var frames = 0
        while client.failure == nil, frames <= limit {
            client.receive(many)
            frames += 100
        }
        #expect(client.failure == .flooded, "\(name)")
        client.expectGoAway(0xB)
    }

    /// What each frame's byte of content makes up for is far less than what comes with it.
    private static let dribbles: [(name: String, frames: [UInt8], count: Int)] = [
        ("DATA", Frame.frame(0, 0, 1, [7]), 1),
        ("padded DATA", Frame.frame(0, 8, 1, [255, 7] + Frame.zeros(255)), 1),
        (
            "WINDOW_UPDATE and DATA",
            Array(repeatElement(Frame.frame(8, 0, 0, Frame.four(1)), count: 500).joined()) + Frame.frame(0, 0, 1, [7]),
            501
        ),
        ("PING and DATA", Frame.frame(6, 0, 0, Frame.zeros(8)) + Frame.frame(0, 0, 1, [7]), 2),
    ]

    @Test(arguments: Self.dribbles)
    func floodWithBytesOfContentEndsTheConnection(_ name: String, _ piece: [UInt8], _ count: Int) throws {
        let client = try self.client()
        client.receive(Frame.frame(1, 4, 1, [0x88]))
        var frames = 0
        // A byte makes up for a fifth of a frame.
        while client.failure == nil, frames <= client.connection.settings.maximumIdleFrames * 5 / 4 + count {
            _ = client.output()
            client.receive(piece)
            frames += count
        }
        #expect(client.failure == .flooded, "\(name)")
        client.expectGoAway(0xB)
    }

    /// An event stream may last for hours.
    @Test(arguments: [(1, 5_000), (9, 10_000)])
    func smallFramesOverTimeAreNoFlood(_ size: Int, _ perSecond: Int) throws {
        let client = try self.client()
        client.receive(Frame.frame(1, 4, 1, [0x88]))
        let events = Array(repeatElement(Frame.frame(0, 0, 1, Frame.zeros(size)), count: perSecond / 10).joined())
        for _ in 0..<300 {
            client.connection.timePassed(.milliseconds(100))
            client.receive(events)
            _ = client.output()
        }
        #expect(client.failure == nil && client.bodies[1]?.count == 30 * perSecond * size)
    }

    /// As many frames of 16 bytes as there is time for.
    @Test func framesOfSomeContentAreNoFlood() throws {
        let client = try self.client()
        client.receive(Frame.frame(1, 4, 1, [0x88]))
        let many = Array(repeatElement(Frame.frame(0, 0, 1, Frame.zeros(16)), count: 1_000).joined())
        for _ in 0..<50 {
            client.receive(many)
            _ = client.output()
        }
        #expect(client.failure == nil && client.bodies[1]?.count == 800_000)
    }

    /// Pings of a connection that carries no content.
    @Test func framesWithoutContentOverTimeAreNoFlood() throws {
        let client = try self.client()
        for _ in 0..<30_000 {
            client.connection.timePassed(.seconds(1))
            client.receive(Frame.frame(6, 0, 0, Frame.zeros(8)))
            _ = client.output()
        }
        #expect(client.failure == nil)
    }

    private static let uselessContent: [(name: String, frame: [UInt8])] = [
        ("DATA", Frame.frame(0, 0, 1, Frame.zeros(16_384))), ("small DATA", Frame.frame(0, 0, 1, [7])),
        ("padding", Frame.frame(0, 8, 1, [255] + Frame.zeros(255))),
        ("HEADERS", Frame.frame(1, 4, 1, [0x88])),
    ]

    /// The client has reset its stream, and the server goes on with it. Its window opens again as long as it does.
    @Test(arguments: Self.uselessContent)
    func contentOfAStreamThatWasResetEndsTheConnection(_ name: String, _ frame: [UInt8]) throws {
        let client = try self.client()
        client.connection.reset(1, .cancel)
        _ = client.output()
        client.receive([])
        #expect(client.connection.openStreams == 0)
        let many = Array(repeatElement(frame, count: 100).joined())
        for _ in 0..<50_000 where client.failure == nil {
            client.receive(many)
            _ = client.output()
        }
        #expect(client.failure == .flooded && client.bodies.isEmpty, "\(name)")
    }

    /// What was under way when a stream was reset is legal: as much as the largest window of a connection.
    @Test func contentUnderWayIsNoFlood() throws {
        let client = try self.client()
        client.connection.reset(1, .cancel)
        _ = client.output()
        let other = try client.connection.request(Pair.get, endsOutput: true)
        _ = client.output()
        let many = Array(repeatElement(Frame.frame(0, 0, 1, Frame.zeros(16_384)), count: 128).joined())
        for _ in 0..<8 {
            client.receive(many)
            _ = client.output()
        }
        client.receive(Frame.frame(1, 5, UInt32(other), [0x88]))
        #expect(client.failure == nil && client.heads.count == 1)
    }

    @Test func requestsThatAreResetAtOnceEndTheConnection() throws {
        let server = try self.server()
        var stream: UInt32 = 1
        while server.failure == nil, stream < 40_000 {
            server.receive(Frame.frame(1, 5, stream, Self.request) + Frame.frame(3, 0, stream, Frame.four(8)))
            _ = server.output()
            server.receive([])
            stream += 2
        }
        #expect(server.failure != nil && server.connection.openStreams == 0)
    }

    @Test func clientWithoutAPrefaceIsRefused() throws {
        let server = try Endpoint(.server)
        server.receive(Array("GET / HTTP/1.1\r\nHost: a\r\n\r\n".utf8))
        #expect(server.failure == .noPreface)
    }

    /// For any bytes the engine fails or continues, and never reads outside its input.
    @Test(arguments: 0..<200)
    func damagedConversationsNeverTrap(_ seed: UInt64) throws {
        let pair = try Pair()
        _ = try pair.client.connection.request(Pair.get, endsOutput: true)
        var there = pair.client.output()
        var generator = Noise(state: seed &* 0x9E37_79B9_7F4A_7C15 | 1)
        for _ in 0..<Int.random(in: 1...6, using: &generator) {
            there[Int.random(in: there.indices, using: &generator)] = .random(in: 0...255, using: &generator)
        }
        pair.server.receive(there)
        var back = pair.server.output()
        if !back.isEmpty { back[Int.random(in: back.indices, using: &generator)] ^= 1 << UInt8(seed % 8) }
        pair.client.receive(back)
        _ = pair.client.output()
        #expect(pair.server.connection.openStreams <= 1)
    }
}

private struct Noise: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        self.state ^= self.state << 13
        self.state ^= self.state >> 7
        self.state ^= self.state << 17
        return self.state
    }
}
