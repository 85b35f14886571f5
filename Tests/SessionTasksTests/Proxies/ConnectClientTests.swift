import ByteKernels
import SessionTasks
import StreamTransport
import Testing
import WireText

@Suite("Tunnels by CONNECT, RFC 9110 §9.3.6")
struct ConnectClientTests {
    private func client(_ fields: [FieldLine] = []) throws -> ConnectClient {
        try ConnectClient(to: .name, fields: fields)
    }

    private func talk(_ response: String, sourceLocation: SourceLocation = #_sourceLocation) throws -> ProxyConversation
    {
        ProxyConversation.inAllPieces(try self.client(), Array(response.utf8), sourceLocation: sourceLocation)
    }

    @Test(arguments: [
        (ProxyDestination.name, "server.test:443"), (.ipv4, "192.0.2.1:80"), (.ipv6, "[2001:db8::1]:80"),
    ])
    func requestNamesHostAndPort(_ destination: ProxyDestination, _ authority: String) throws {
        var client = try ConnectClient(to: destination, fields: [FieldLine("Proxy-Authorization", "Basic eA==")])
        let request =
            "CONNECT \(authority) HTTP/1.1\r\nHost: \(authority)\r\nProxy-Authorization: Basic eA==\r\n\r\n"
        #expect(client.begin() == .send(Array(request.utf8)))
    }

    /// The fields that frame content are ignored (RFC 9110 §9.3.6).
    @Test(arguments: [
        "HTTP/1.1 200 Connection established\r\n\r\n", "HTTP/1.0 200\r\n\r\n",
        "HTTP/1.1 299 \r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 100 \r\n\r\nHTTP/1.1 103 \r\nLink: x\r\n\r\nHTTP/1.1 200 \r\n\r\n",
    ])
    func tunnelBeginsAfterTheHead(_ response: String) throws {
        let talk = try self.talk(response + "later")
        #expect(talk.end == .established && talk.rest == Array("later".utf8))
    }

    @Test(arguments: [
        ("HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n\r\nno!\nmore", "no!"),
        ("HTTP/1.1 503 Busy\r\nContent-Type: text/html\r\nContent-Length: 4\r\n\r\n<no>", ""),
        ("HTTP/1.1 407 \r\nContent-Length: 0\r\n\r\n", ""), ("HTTP/1.1 101 \r\n\r\n", ""),
        ("HTTP/1.1 302 \r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nwords", ""),
        ("HTTP/1.1 500 \r\nContent-Type: text/plain\r\nContent-Length: 0x\r\n\r\nwords", ""),
    ])
    func refusalHasTheProxysWords(_ response: String, _ text: String) throws {
        guard case .fail(.refused(let head, let words)) = try self.talk(response).end else {
            Issue.record("not refused")
            return
        }
        #expect(response.dropFirst(9).hasPrefix("\(head.status)") && words == text)
    }

    @Test func longTextOfARefusalIsCut() throws {
        let text = String(repeating: "x", count: ConnectClient.textLimit + 10)
        let talk = try self.talk("HTTP/1.1 500 \r\nContent-Type: text/plain\r\n\r\n" + text)
        guard case .fail(.refused(_, let words)) = talk.end else {
            Issue.record("not refused")
            return
        }
        #expect(words.utf8.count == ConnectClient.textLimit)
        #expect(
            ProxyFailure.refused(ResponseHead(status: 403, reason: "Forbidden"), text: "no").description
                == "the proxy answered 403 Forbidden: no")
    }

    @Test(arguments: [
        "SSH-2.0-x\r\n", "\nHTTP/1.1 200 \n\n", "HTTP/1.1 200 \r\n x: y\r\n\r\n", "\u{5}\0\r\n",
        String(repeating: "HTTP/1.1 100 \r\n\r\n", count: ConnectClient.interimLimit + 1),
    ])
    func responseThatIsNoHTTPIsRefused(_ bytes: String) throws {
        guard case .fail(.violation) = try self.talk(bytes).end else {
            Issue.record("accepted \(bytes)")
            return
        }
    }

    @Test func headHasALimit() throws {
        let client = try ConnectClient(to: .name, fields: [], limits: HeadLimits(byteCount: 64))
        let talk = ProxyConversation(
            client, Array(("HTTP/1.1 200 " + String(repeating: "x", count: 99)).utf8), piece: 7)
        if case .fail(.violation) = talk.end {} else { Issue.record("not refused") }
    }

    @Test(arguments: ["", "a b", "a\r\nX: y", "a/b", "a@b", "a:1", "ü"])
    func nameThatWouldChangeTheRequestIsRefused(_ name: String) {
        #expect(throws: ProxyFailure.self) { try ConnectClient(to: .name(name, port: 1), fields: []) }
    }

    @Test func malformedFieldIsRefused() {
        #expect(throws: ProxyFailure.self) { try self.client([FieldLine("X", "a\r\nb: c")]) }
    }

    @Test(arguments: [
        ("NTLM YWJj", "Content-Length: 3", true), ("Negotiate YWJj", "Content-Length: 3", true),
        ("ntlm YWJj", "Content-Length: 3", true), ("NTLM", "Content-Length: 3", false),
        ("Basic realm=x", "Content-Length: 3", false), ("NTLM YWJj", "Transfer-Encoding: chunked", false),
        ("NTLM YWJj", "Content-Length: 3\r\nProxy-Connection: close", false),
        ("NTLM YWJj", "Content-Length: 3\r\nConnection: close", false), ("NTLM YWJj", "X: y", false),
        ("NTLM YWJj", "Content-Length: \(ConnectClient.skipLimit + 1)", false),
    ])
    func requestIsRepeatedWhereTheProxyContinuesAnAuthentication(
        _ challenge: String, _ field: String, isRepeated: Bool
    ) throws {
        let talk = try self.talk("HTTP/1.1 407 \r\nProxy-Authenticate: \(challenge)\r\n\(field)\r\n\r\nno!")
        switch talk.end {
        case .authorize(let head): #expect(isRepeated && head.status == 407)
        case .fail(.refused): #expect(!isRepeated)
        // The text of the refusal has not ended.
        case nil: #expect(!isRepeated && talk.sent.count == 1)
        default: Issue.record("\(String(describing: talk.end))")
        }
    }

    private enum State: CaseIterable {
        case initial, awaitingHead, awaitingText, skipping, challenged, established, failed
    }

    private static let challenge = "HTTP/1.1 407 \r\nProxy-Authenticate: NTLM YWJj\r\nContent-Length: 2\r\n\r\n"

    @Test func everyEventIsHandledInEveryState() throws {
        for state in State.allCases {
            for event in ProxyEvent.allCases {
                var client = try self.client()
                if state != .initial { _ = client.begin() }
                let received =
                    switch state {
                    case .initial, .awaitingHead: ""
                    case .awaitingText: "HTTP/1.1 403 No\r\nContent-Type: text/plain\r\nContent-Length: 9\r\n\r\nwords"
                    case .skipping: Self.challenge + "n"
                    case .challenged: Self.challenge + "no"
                    case .established: "HTTP/1.1 200 \r\n\r\n"
                    case .failed: "HTTP/1.1 403 No\r\n\r\n"
                    }
                var consumed = 0
                if !received.isEmpty {
                    _ = Array(received.utf8).withRawSpan { client.bytesReceived($0, consumed: &consumed) }
                }
                let action = event.apply(to: &client)
                switch (state, event) {
                case (.initial, .begin):
                    if case .send = action {} else { Issue.record("did not send: \(action)") }
                case (.skipping, .garbage):
                    if case .authorize = action {} else { Issue.record("\(action)") }
                case (.skipping, .inputClosed), (.skipping, .deadline):
                    if case .fail(.refused) = action {} else { Issue.record("\(action)") }
                case (.challenged, .authorized):
                    if case .send = action {} else { Issue.record("\(action)") }
                case (.established, _), (.failed, _), (_, .begin), (.awaitingText, .garbage), (_, .authorized):
                    #expect(action == .wait, "\(state) \(event)")
                case (.awaitingText, _):
                    if case .fail(.refused(_, "words")) = action {} else { Issue.record("\(event): \(action)") }
                case (_, .inputClosed): #expect(action == .fail(.closed))
                case (_, .deadline): #expect(action == .fail(.timedOut))
                case (_, .garbage):
                    if case .fail(.violation) = action {} else { Issue.record("\(state) \(event): \(action)") }
                }
            }
        }
    }
}
