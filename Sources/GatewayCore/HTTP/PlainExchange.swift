import ByteKernels
import StreamTransport
import WireText

/// One request and its response, on the loop of their connection.
///
/// A response has a head and then bytes until `finish`. No write is refused: a writer stops while `queuedBytes` is above
/// the high watermark, and calls `awaitProgress`. After the end of the connection all calls do nothing.
package final class PlainExchange {
    private enum State: Hashable {
        case head
        /// With a fixed length: bytes that are missing.
        case fixed(left: Int64)
        case chunked
        /// Until the connection closes.
        case unbounded
        case finished
    }

    package let request: PlainRequest
    package let loop: Loop
    /// The gateway on this loop.
    package let gateway: LoopGateway
    /// Number of the connection in the REST interface.
    let connectionNumber: UInt64
    private weak var connection: HTTPConnection?
    /// `nil` once the exchange is over.
    var context: ConnectionContext? { self.connection?.context }
    private var source: (any HTTPBodySource)?
    private var state = State.head
    /// Status of the response; `nil` before its head.
    package private(set) var status: Int?

    init(_ request: PlainRequest, on connection: HTTPConnection) {
        self.request = request
        self.connection = connection
        self.gateway = connection.context.gateway
        self.connectionNumber = connection.context.identifier
        self.loop = connection.context.loop
    }

    private var isHead: Bool { self.request.head.method == "HEAD" }
    /// Limit of a request's head on this listener, in bytes.
    var maximumHeaderSize: Int { self.connection?.maximumHeaderSize ?? 0 }

    /// Whether the response is complete, or the connection lost.
    package var isOver: Bool { self.connection == nil || self.state == .finished }

    // MARK: Responses in one piece

    /// Answers completely. `Date`, `Content-Length` and `Connection` are added.
    package func respond(_ status: Int, _ fields: [FieldLine], body: [UInt8]) {
        guard self.begin(status, fields, .bytes(Int64(body.count))) else { return }
        body.withRawSpan { _ = self.write($0) }
        self.finish()
    }

    /// Answers with one line of text for a human.
    package func respond(_ status: Int, _ fields: [FieldLine] = [], text: String) {
        let type = [
            FieldLine("Content-Type", "text/plain; charset=utf-8"), FieldLine("X-Content-Type-Options", "nosniff"),
        ]
        self.respond(status, type + fields, body: Array(text.utf8) + [0x0A])
    }

    // MARK: Responses in several pieces

    /// Writes the head.
    /// - Parameter source: is called when the client has taken bytes, and at the end.
    /// - Returns: whether a body follows. Otherwise (`HEAD`, a status without a body) the exchange is finished.
    package func begin(
        _ status: Int, _ fields: [FieldLine], _ length: HTTPBodyLength, source: (any HTTPBodySource)? = nil
    ) -> Bool {
        guard let connection = self.connection, self.state == .head else { return false }
        self.status = status
        self.source = source
        var head = HeadWriter(status: status, reason: HTTPStatusText.of(status), capacity: 512)
        head.add("Date", self.loop.responseDate)
        for field in fields where field.isWellFormed { head.add(field) }
        switch length {
        case .bytes(let count):
            head.add("Content-Length", String(max(0, count)))
            self.state = .fixed(left: max(0, count))
        case .open where self.request.head.version >= .http11:
            head.add("Transfer-Encoding", "chunked")
            self.state = .chunked
        case .open:
            connection.closeAfterResponse()
            self.state = .unbounded
        case .none: self.state = .fixed(left: 0)
        }
        if !connection.persists { head.add("Connection", "close") }
        head.finished().withRawSpan { _ = connection.write($0) }
        guard self.isHead || length == .none else { return true }
        self.end()
        return false
    }

    /// - Returns: `queuedBytes`.
    @discardableResult
    package func write(_ bytes: RawSpan) -> Int {
        guard let connection = self.connection, bytes.byteCount > 0 else { return 0 }
        switch self.state {
        case .fixed(let left):
            guard left >= bytes.byteCount else {
                self.abort("a response became longer than it was announced")
                return 0
            }
            self.state = .fixed(left: left - Int64(bytes.byteCount))
            return connection.write(bytes)
        case .chunked:
            ChunkReader.header(bytes.byteCount).withRawSpan { _ = connection.write($0) }
            connection.write(bytes)
            return Array("\r\n".utf8).withRawSpan { connection.write($0) }
        case .unbounded: return connection.write(bytes)
        case .head, .finished: return connection.queuedBytes
        }
    }

    /// Copies bytes of a file to the output, or gives them to the kernel without their coming into the process where the
    /// connection is a plain socket. Only for a body of known length.
    /// - Returns: their number, at most `count`; 0 at the end of the file; a negated error number.
    func writeFile(_ file: OpenFile, from offset: Int64, atMost count: Int) -> Int {
        guard let connection = self.connection, case .fixed(let left) = self.state else { return 0 }
        let used = connection.writeFile(file, from: offset, atMost: Int(min(Int64(count), left)))
        if used > 0 { self.state = .fixed(left: left - Int64(used)) }
        return used
    }

    /// Bytes that the client's side of the connection has not taken.
    package var queuedBytes: Int { self.connection?.queuedBytes ?? 0 }
    /// Bytes of the connection that the system has taken.
    var sentBytes: UInt64 { self.connection?.sentBytes ?? 0 }

    /// Whether the writer should stop until progress.
    package var isBehind: Bool { self.queuedBytes > HTTPBounds.highWatermark }

    /// Whether bytes of files go from the kernel to the kernel.
    var sendsFilesDirectly: Bool { self.connection?.isPlainSocket ?? false }

    /// Requests a call of the source's `outputProgressed` when the queued bytes are sent.
    package func awaitProgress() { self.connection?.awaitProgress() }

    /// The connection closes after this response; to be called before `begin`.
    package func closeAfterResponse() { self.connection?.closeAfterResponse() }

    /// Ends the response. One with missing bytes is aborted.
    package func finish() {
        switch self.state {
        case .head:
            assertionFailure("a responder finished without a response")
            self.respond(500, text: "Internal error.")
        case .fixed(let left) where left > 0: self.abort("a response ended before its announced length")
        case .chunked:
            Array("0\r\n\r\n".utf8).withRawSpan { _ = self.connection?.write($0) }
            self.end()
        case .unbounded, .fixed: self.end()
        case .finished: break
        }
    }

    /// Resets the connection: the client must not take what it has for the whole body.
    /// - Parameter detail: for the log.
    package func abort(_ detail: String) {
        guard let connection = self.connection, self.state != .finished else { return }
        self.state = .finished
        connection.exchangeAborted(self, detail: detail)
    }

    private func end() {
        guard self.state != .finished else { return }
        self.state = .finished
        self.connection?.exchangeFinished(self)
    }

    // MARK: From the connection

    func outputProgressed() { self.source?.outputProgressed(self) }
    func inputClosed() { self.source?.inputClosed(self) }
    func drain() { self.source?.drain(self) }

    /// The connection has no more to do with the exchange.
    func detach() {
        self.state = .finished
        self.connection = nil
        let source = self.source
        self.source = nil
        source?.exchangeEnded()
    }
}

/// Reason phrases of the statuses of plain HTTP, those of errors as elsewhere.
private enum HTTPStatusText {
    static func of(_ status: Int) -> String {
        switch status {
        case 200: "OK"
        case 204: "No Content"
        case 206: "Partial Content"
        case 301: "Moved Permanently"
        case 304: "Not Modified"
        case 417: "Expectation Failed"
        case ..<400: ""
        default: ReasonPhrase.of(status)
        }
    }
}
