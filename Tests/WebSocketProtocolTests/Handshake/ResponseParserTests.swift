import TestSupport
import Testing
import WebSocketProtocol

@Suite("Head of a response, RFC 9112 §4")
struct ResponseParserTests {
    /// RFC 6455 §1.2.
    static let example = """
        HTTP/1.1 101 Switching Protocols\r
        Upgrade: websocket\r
        Connection: Upgrade\r
        Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r
        Sec-WebSocket-Protocol: chat\r
        \r

        """

    @Test func exampleOfTheRFCIsReadHoweverItArrives() {
        let bytes = Array(Self.example.utf8)
        let whole = HeadFeeding.response([bytes + [0x81]])
        #expect(whole.head?.status == 101)
        #expect(whole.head?.reason == "Switching Protocols")
        #expect(whole.head?.fields["sec-websocket-protocol"] == "chat")
        #expect(whole.consumed == bytes.count)
        #expect(HeadFeeding.response(bytes.singleBytes) == whole)
    }

    @Test func statusLineWithoutAPhraseIsRead() {
        for line in ["HTTP/1.1 404 ", "HTTP/1.1 404"] {
            let head = HeadFeeding.response(line + "\r\n\r\n").head
            #expect(head == ResponseHead(status: 404))
        }
    }

    @Test(arguments: [
        "HTTP/1.1  404 Not Found", "HTTP/1.1 40 x", "HTTP/1.1 4040 x", "HTTP/1.1 099 x", "HTTP/1.1 +44 x", "HTTP/1.1",
        "http/1.1 200 OK", "HTTP/2 200", "ICY 200 OK", "", "HTTP/1.1 2\u{E9} x",
    ])
    func invalidStatusLineIsRefused(_ line: String) {
        #expect(HeadFeeding.response(line + "\r\n\r\n").violation == .malformedStartLine)
    }

    @Test func interimResponsesAreSkipped() {
        #expect([100, 102, 103, 199].allSatisfy { ResponseHead(status: $0).isInterim })
        #expect([101, 200, 404, 500].allSatisfy { !ResponseHead(status: $0).isInterim })
    }
}
