import ByteKernels
import SessionTasks
import StreamTransport
import WebSocketProtocol

/// The steps of `ConnectionServer` scripts.
extension StreamTask {
    struct BadRequest: Error {}

    func say(_ text: String) async throws { try await self.write(Array(text.utf8)) }

    /// Reads exactly `count` bytes as text.
    func hear(_ count: Int) async throws -> String {
        String(decoding: try await self.read(minimum: count, maximum: count).bytes, as: UTF8.self)
    }

    /// Reads to the end, as text.
    func hearAll() async throws -> String {
        var bytes: [UInt8] = []
        while true {
            let chunk = try await self.read(maximum: 65_536)
            bytes += chunk.bytes
            if chunk.isAtEnd { return String(decoding: bytes, as: UTF8.self) }
        }
    }

    /// The head of the next request.
    func head() async throws -> RequestHead {
        var parser = RequestParser()
        while true {
            let chunk = try await self.read(maximum: 65_536)
            var used = 0
            let parsed = chunk.bytes.withRawSpan { bytes in Result { try parser.parse(bytes, consumed: &used) } }
            if let head = try parsed.get() { return head }
            if chunk.isAtEnd { throw BadRequest() }
        }
    }

    /// Takes the next request for the opening handshake of a WebSocket, and accepts it.
    func accept(
        subprotocols: [String] = [], deflate: DeflatePolicy? = nil, fields: [HTTPField] = [],
        options: WebSocketOptions = WebSocketOptions(), didAccept: (RequestHead) -> Void = { _ in }
    ) async throws -> WebSocketTask {
        let head = try await self.head()
        didAccept(head)
        return try await self.accept(
            head, subprotocols: subprotocols, deflate: deflate, fields: fields, options: options)
    }

    func accept(
        _ head: RequestHead, subprotocols: [String] = [], deflate: DeflatePolicy? = nil, fields: [HTTPField] = [],
        options: WebSocketOptions = WebSocketOptions()
    ) async throws -> WebSocketTask {
        let request = try ServerHandshake.evaluate(head).get()
        let acceptance = request.acceptance(subprotocols: subprotocols, deflate: deflate, fields: fields)
        return try await withCheckedThrowingContinuation { continuation in
            self.loop.execute {
                self.captureStreams { captured in
                    continuation.resume(
                        with: captured.map { streams in
                            WebSocketTask(
                                accepting: streams.transport, response: acceptance.response,
                                subprotocol: acceptance.subprotocol,
                                deflate: acceptance.deflate.map {
                                    NegotiatedDeflate($0, policy: deflate ?? DeflatePolicy())
                                }, options: options)
                        })
                }
            }
        }
    }

    /// Accepts an opening handshake on a stream that remains a stream.
    func upgrade(_ fields: [String] = []) async throws {
        let head = try await self.head()
        let accept = AcceptKey.value(for: head.fields["Sec-WebSocket-Key"] ?? "")
        let lines = ["Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Accept: \(accept)"] + fields
        try await self.say("HTTP/1.1 101 Switching Protocols\r\n" + lines.map { $0 + "\r\n" }.joined() + "\r\n")
    }

    /// Answers a request otherwise.
    func refuse(_ status: Int, _ fields: [String] = [], _ body: String = "") async throws {
        let lines = fields + ["Content-Length: \(body.utf8.count)"]
        try await self.say("HTTP/1.1 \(status) No\r\n" + lines.map { $0 + "\r\n" }.joined() + "\r\n" + body)
    }
}

extension WebSocketTask {
    /// How it ended.
    func end() async -> WebSocketEnd {
        await withCheckedContinuation { continuation in
            self.loop.execute { self.whenEnded { continuation.resume(returning: $0) } }
        }
    }

    /// Echoes each message until the end.
    func echo() async -> WebSocketEnd {
        do {
            while true { try await self.send(try await self.receive()) }
        } catch {
            return await self.end()
        }
    }
}
