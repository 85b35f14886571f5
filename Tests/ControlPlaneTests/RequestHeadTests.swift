import ControlPlane
import NIOCore
import NIOEmbedded
import NIOHTTP1
import Testing

/// The decoder and the encoder with the handler between them and a server that the tests play.
private struct Wire {
    let channel = EmbeddedChannel()

    init() throws {
        try self.channel.pipeline.syncOperations.configureHTTPServerPipeline(
            withPipeliningAssistance: false, withErrorHandling: false)
        try self.channel.pipeline.syncOperations.addHandler(RequestHeadHandler(ownAuthority: "127.0.0.1:80"))
    }

    /// Sends `text` to the server; errors of bytes that are no HTTP are ignored.
    func send(_ text: String) {
        _ = try? self.channel.writeInbound(ByteBuffer(string: text))
    }

    /// Heads and ends that have come to the server.
    func requests() throws -> (heads: [HTTPRequestHead], ends: Int) {
        var (heads, ends): ([HTTPRequestHead], Int) = ([], 0)
        while let part = try self.channel.readInbound(as: HTTPServerRequestPart.self) {
            if case .head(let head) = part { heads.append(head) }
            if case .end = part { ends += 1 }
        }
        return (heads, ends)
    }

    /// - Parameter length: of the body; without one it is streamed.
    func answer(_ body: String, length: Int?) throws {
        var head = HTTPResponseHead(version: .http1_1, status: .ok)
        if let length { head.headers.add(name: "Content-Length", value: "\(length)") }
        try self.channel.writeOutbound(HTTPServerResponsePart.head(head))
        try self.channel.writeOutbound(HTTPServerResponsePart.body(.byteBuffer(ByteBuffer(string: body))))
        // The connection may be closed with this.
        _ = try? self.channel.writeOutbound(HTTPServerResponsePart.end(nil))
    }

    /// The text that the client has received.
    func received() throws -> String {
        var text = ""
        while let bytes = try self.channel.readOutbound(as: ByteBuffer.self) { text += String(buffer: bytes) }
        return text
    }

    /// Runs scheduled work first; the embedded channel closes in both directions.
    var isClosed: Bool {
        self.channel.embeddedEventLoop.advanceTime(by: .seconds(5))
        return !self.channel.isActive
    }
}

@Suite("Heads of requests to the control plane, RFC 9112")
struct RequestHeadTests {
    private func open() async throws -> Wire {
        let wire = try Wire()
        try await wire.channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).get()
        return wire
    }

    @Test(arguments: [
        ("HTTP/1.0", "", false), ("HTTP/1.0", "Connection: keep-alive\r\n", true),
        ("HTTP/1.0", "Connection: Keep-Alive\r\n", true), ("HTTP/1.0", "Connection: keep-alive, close\r\n", false),
        ("HTTP/1.1", "", true), ("HTTP/1.1", "Connection: Close\r\n", false),
        ("HTTP/1.1", "Connection: te, CLOSE\r\n", false),
    ])
    func connectionClosesAfterARequestWithConnectionClose(_ version: String, _ fields: String, _ stays: Bool)
        async throws
    {
        let wire = try await self.open()
        wire.send("GET /livez \(version)\r\nHost: localhost\r\n\(fields)\r\n")
        let head = try #require(try wire.requests().heads.first)
        #expect((head.headers["Connection"] == ["close"]) == !stays)
        try wire.answer("ok", length: 2)
        let answer = try wire.received()
        #expect(answer.contains("Connection: close\r\n") == !stays)
        #expect(answer.contains("Connection: keep-alive\r\n") == (stays && version == "HTTP/1.0"))
        #expect(answer.hasPrefix("HTTP/1.1 200 OK\r\n") && answer.hasSuffix("\r\n\r\nok"))
        #expect(wire.isClosed == !stays)
    }

    @Test func http10ResponseIsNotChunkedAndEndsWithTheConnection() async throws {
        let wire = try await self.open()
        wire.send("GET /v1/events HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n")
        try wire.answer(":\n\n", length: nil)
        let answer = try wire.received()
        #expect(answer.hasPrefix("HTTP/1.0 200 OK\r\n") && answer.hasSuffix("\r\n\r\n:\n\n"))
        #expect(answer.contains("Connection: close\r\n") && !answer.lowercased().contains("chunked"))
        #expect(wire.isClosed)
    }

    @Test func requestAfterTheLastOneIsNotCarriedOut() async throws {
        let wire = try await self.open()
        wire.send(
            "GET /a HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\nGET /b HTTP/1.1\r\nHost: localhost\r\n\r\n\0"
        )
        let (heads, ends) = try wire.requests()
        #expect(heads.map(\.uri) == ["/a"] && ends == 1)
    }

    @Test(arguments: [
        ("HTTP/1.0", "chunked"), ("HTTP/1.1", "gzip, chunked"), ("HTTP/1.1", "gzip"),
        ("HTTP/1.1", "identity"),
    ])
    func unknownTransferCodingIsNotImplemented(_ version: String, _ coding: String) async throws {
        let wire = try await self.open()
        wire.send(
            "POST /v1/drains \(version)\r\nHost: localhost\r\nTransfer-Encoding: \(coding)\r\n\r\n2\r\n{}\r\n0\r\n\r\n")
        #expect(try wire.requests().heads.isEmpty)
        let answer = try wire.received()
        #expect(answer.hasPrefix("HTTP/1.1 501 Not Implemented\r\n"), "\(answer)")
        #expect(answer.contains("Content-Type: application/problem+json\r\n"))
        #expect(answer.contains("Connection: close\r\n") && answer.hasSuffix("}\n"))
        #expect(wire.isClosed)
    }

    @Test func refusalKeepsTheOrderOfTheRequests() async throws {
        let wire = try await self.open()
        wire.send(
            "GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n"
                + "POST /b HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n")
        #expect(try wire.requests().heads.map(\.uri) == ["/a"])
        #expect(try wire.received().isEmpty)
        try wire.answer("ok", length: 2)
        let answer = try wire.received()
        let first = try #require(answer.firstRange(of: "HTTP/1.1 200 OK"))
        let second = try #require(answer.firstRange(of: "HTTP/1.1 501 Not Implemented"))
        #expect(first.lowerBound < second.lowerBound)
    }

    @Test func refusalOfHEADHasNoBody() async throws {
        let wire = try await self.open()
        wire.send("HEAD ftp://localhost/livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
        let answer = try wire.received()
        #expect(answer.hasPrefix("HTTP/1.1 421 Misdirected Request\r\n") && answer.hasSuffix("\r\n\r\n"))
        #expect(wire.isClosed)
    }

    @Test(arguments: ["Content-Length: 5", "Transfer-Encoding: chunked"])
    func clientThatWaitsIsAskedForItsBodyOnce(_ framing: String) async throws {
        let wire = try await self.open()
        wire.send("POST /a HTTP/1.1\r\nHost: localhost\r\nExpect: 100-Continue\r\n\(framing)\r\n\r\n")
        #expect(try wire.requests().heads.map(\.uri) == ["/a"])
        #expect(try wire.received().isEmpty)
        for _ in 0..<2 { wire.channel.triggerUserOutboundEvent(RequestHeadHandler.BodyWanted(), promise: nil) }
        #expect(try wire.received() == "HTTP/1.1 100 Continue\r\n\r\n")
        wire.send(framing.hasPrefix("Content") ? "hello" : "5\r\nhello\r\n0\r\n\r\n")
        #expect(try wire.requests().ends == 1)
        try wire.answer("ok", length: 2)
        let answer = try wire.received()
        #expect(answer.hasPrefix("HTTP/1.1 200 OK\r\n") && !answer.contains("Connection: close\r\n"))
        #expect(!wire.isClosed)
    }

    @Test(arguments: [
        ("HTTP/1.0", "Content-Length: 5\r\nExpect: 100-continue\r\n"), ("HTTP/1.1", "Content-Length: 5\r\n"),
        ("HTTP/1.1", "Content-Length: 0\r\nExpect: 100-continue\r\n"), ("HTTP/1.1", "Expect: 100-continue\r\n"),
    ])
    func clientThatDoesNotWaitGetsNoInterimResponse(_ version: String, _ fields: String) async throws {
        let wire = try await self.open()
        wire.send("POST /a \(version)\r\nHost: localhost\r\n\(fields)\r\n")
        wire.channel.triggerUserOutboundEvent(RequestHeadHandler.BodyWanted(), promise: nil)
        #expect(try wire.requests().heads.count == 1)
        #expect(try wire.received().isEmpty)
    }

    @Test func responseWithoutTheBodyThatWasNotAskedForIsTheLast() async throws {
        let wire = try await self.open()
        wire.send("POST /a HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n")
        try wire.answer("no", length: 2)
        let answer = try wire.received()
        #expect(answer.hasPrefix("HTTP/1.1 200 OK\r\n") && answer.contains("Connection: close\r\n"))
        #expect(wire.isClosed)
    }

    @Test(arguments: [
        ("http://evil.example/livez?a=b", "Host: localhost\r\n", "/livez?a=b", ["evil.example"]),
        ("HTTP://localhost:1/livez", "Host: evil.example\r\n", "/livez", ["localhost:1"]),
        ("https://evil.example?a", "Host: localhost\r\n", "/?a", ["evil.example"]),
        ("http:///livez", "Host: localhost\r\n", "/livez", [""]),
        ("http://user@localhost/", "Host: localhost\r\n", "/", ["user@localhost"]),
        // HTTP/1.1 still requires exactly one Host.
        ("http://localhost/", "", "/", []), ("http://localhost/", "Host: a\r\nHost: b\r\n", "/", ["a", "b"]),
        ("/livez", "Host: localhost\r\n", "/livez", ["localhost"]),
        ("//evil.example/", "Host: a\r\n", "//evil.example/", ["a"]),
    ])
    func authorityOfAnAbsoluteTargetIsUsed(
        _ target: String, _ fields: String, _ uri: String, _ hosts: [String]
    ) async throws {
        let wire = try await self.open()
        wire.send("GET \(target) HTTP/1.1\r\n\(fields)\r\n")
        let head = try #require(try wire.requests().heads.first)
        #expect(head.uri == uri)
        #expect(head.headers["Host"] == hosts)
    }

    @Test func anOldRequestNeedsNoHost() async throws {
        let wire = try await self.open()
        wire.send("GET /livez HTTP/1.0\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n")
        let head = try #require(try wire.requests().heads.first)
        #expect(head.headers["Host"] == ["127.0.0.1:80"])
        #expect(head.headers["Upgrade"] == [])
    }

    @Test func targetOfAnotherSchemeIsMisdirected() async throws {
        let wire = try await self.open()
        wire.send("GET ftp://localhost/livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
        #expect(try wire.requests().heads.isEmpty)
        #expect(try wire.received().hasPrefix("HTTP/1.1 421 Misdirected Request\r\n"))
    }
}
