import ByteKernels
import SessionTasks
import StreamTransport
import Testing

@Suite("Clients of SOCKS proxies, RFC 1928, RFC 1929 and SOCKS 4a")
struct SOCKSClientTests {
    private static let granted5: [UInt8] = [5, 0, 0, 1, 0, 0, 0, 0, 0, 0]
    private static let granted4: [UInt8] = [0, 90, 0, 80, 0, 0, 0, 0]
    private static let later = Array("later".utf8)

    private func socks5(
        _ destination: ProxyDestination = .name, _ credential: ProxyCredential? = nil
    ) throws -> SOCKS5Client {
        try SOCKS5Client(to: destination, credential: credential)
    }

    private let credential = ProxyCredential(user: "me", password: "secret")

    // MARK: SOCKS 5

    @Test(arguments: [
        (ProxyDestination.name, [5, 1, 0, 3, 11] + Array("server.test".utf8) + [1, 187]),
        (.ipv4, [5, 1, 0, 1, 192, 0, 2, 1, 0, 80]),
        (.ipv6, [5, 1, 0, 4, 0x20, 0x01, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 80]),
    ])
    func requestNamesTheDestination(_ destination: ProxyDestination, _ request: [UInt8]) throws {
        let talk = ProxyConversation.inAllPieces(
            try self.socks5(destination), [5, 0] + Self.granted5 + Self.later)
        #expect(talk.sent == [[5, 1, 0], request])
        #expect(talk.end == .established && talk.rest == Self.later)
    }

    @Test func passwordIsSentIfTheProxyChoosesAuthentication() throws {
        let client = try self.socks5(.ipv4, self.credential)
        let talk = ProxyConversation.inAllPieces(client, [5, 2, 1, 0] + Self.granted5 + Self.later)
        #expect(talk.sent[..<2] == [[5, 2, 0, 2], [1, 2] + Array("me".utf8) + [6] + Array("secret".utf8)])
        #expect(talk.sent.count == 3 && talk.end == .established && talk.rest == Self.later)
        let without = ProxyConversation.inAllPieces(client, [5, 0] + Self.granted5)
        #expect(without.sent.count == 2 && without.end == .established)
    }

    @Test(arguments: [
        [UInt8]([5, 0, 0, 1, 10, 0, 0, 1, 31, 144]), [5, 0, 0, 3, 4, 1, 2, 3, 4, 31, 144], [5, 0, 0, 3, 0, 31, 144],
        [5, 0, 0, 4] + [UInt8](repeating: 7, count: 16) + [31, 144],
    ])
    func boundAddressIsSkipped(_ reply: [UInt8]) throws {
        let talk = ProxyConversation.inAllPieces(try self.socks5(), [5, 0] + reply + Self.later)
        #expect(talk.end == .established && talk.rest == Self.later)
    }

    @Test func refusalIsReported() throws {
        for code in UInt8(1)...9 {
            let talk = ProxyConversation.inAllPieces(try self.socks5(), [5, 0, 5, code])
            #expect(talk.end == .fail(.refusedBySOCKS(version: 5, code: code)))
        }
        #expect(
            ProxyConversation.inAllPieces(try self.socks5(), [5, 0xFF]).end
                == .fail(.noAcceptableMethod(hasCredential: false)))
        let known = try self.socks5(.name, self.credential)
        #expect(ProxyConversation.inAllPieces(known, [5, 0xFF]).end == .fail(.noAcceptableMethod(hasCredential: true)))
        #expect(ProxyConversation.inAllPieces(known, [5, 2, 1, 1]).end == .fail(.credentialRefused))
        #expect(ProxyFailure.refusedBySOCKS(version: 5, code: 5).description == "the proxy refused: connection refused")
    }

    /// Not SOCKS 5; a method that was not offered; a reply of another version; an unknown kind of address.
    @Test(arguments: [[UInt8]([4]), [72], [5, 1], [5, 2], [5, 0, 4], [5, 0, 5, 0, 0, 2]])
    func replyThatIsNoSOCKS5IsRefused(_ bytes: [UInt8]) throws {
        guard case .fail(.violation) = ProxyConversation.inAllPieces(try self.socks5(), bytes).end else {
            Issue.record("accepted \(bytes)")
            return
        }
    }

    /// RFC 1929 §2 wants a byte at least; servers take none.
    @Test func emptyPasswordIsSent() throws {
        let client = try self.socks5(.name, ProxyCredential(user: "u", password: ""))
        let talk = ProxyConversation.inAllPieces(client, [5, 2, 1, 0] + Self.granted5)
        #expect(talk.sent.dropFirst().first == [1, 1, 0x75, 0] && talk.end == .established)
    }

    @Test func destinationThatSOCKS5CannotExpressIsRefused() throws {
        let long = String(repeating: "x", count: 256)
        for credential in [("", "p"), (long, "p"), ("u", long)] {
            #expect(throws: ProxyFailure.self) {
                try self.socks5(.name, ProxyCredential(user: credential.0, password: credential.1))
            }
        }
        for name in ["", long] { #expect(throws: ProxyFailure.self) { try self.socks5(.name(name, port: 1)) } }
        #expect(throws: ProxyFailure.self) { try self.socks5(.address(.unix(path: "/s"))) }
    }

    private enum State5: CaseIterable {
        case initial, awaitingMethod, awaitingAuthentication, awaitingReply, established, failed

        func client() throws -> SOCKS5Client {
            var client = try SOCKS5Client(to: .name, credential: ProxyCredential(user: "u", password: "p"))
            let bytes: [UInt8]
            switch self {
            case .initial: return client
            case .awaitingMethod: bytes = []
            case .awaitingAuthentication: bytes = [5, 2]
            case .awaitingReply: bytes = [5, 0]
            case .established: bytes = [5, 0] + SOCKSClientTests.granted5
            case .failed: bytes = [9]
            }
            _ = client.begin()
            var consumed = 0
            while consumed < bytes.count {
                _ = bytes.withRawSpan { client.bytesReceived($0, consumed: &consumed) }
            }
            return client
        }
    }

    @Test func everyEventIsHandledInEveryStateOfSOCKS5() throws {
        for state in State5.allCases {
            for event in ProxyEvent.allCases {
                var client = try state.client()
                let action = event.apply(to: &client)
                switch (state, event) {
                case (.initial, .begin): #expect(action == .send([5, 2, 0, 2]))
                case (.established, _), (.failed, _), (_, .begin), (_, .authorized):
                    #expect(action == .wait, "\(state) \(event)")
                case (_, .inputClosed): #expect(action == .fail(.closed), "\(state)")
                case (_, .deadline): #expect(action == .fail(.timedOut), "\(state)")
                // The version in the answer to a password does not count.
                case (.awaitingAuthentication, .garbage): #expect(action == .wait)
                case (_, .garbage):
                    if case .fail(.violation) = action {} else { Issue.record("\(state) \(event): \(action)") }
                }
                if state == .initial, event == .begin || state == .awaitingAuthentication { continue }
                // A failure is final.
                if case .fail = action { #expect(client.inputClosed() == .wait && client.begin() == .wait) }
            }
        }
    }

    // MARK: SOCKS 4

    @Test func requestNamesAnAddressOrAName() throws {
        let address = ProxyConversation.inAllPieces(
            try SOCKS4Client(to: .ipv4, user: "me"), Self.granted4 + Self.later)
        #expect(address.sent == [[4, 1, 0, 80, 192, 0, 2, 1] + Array("me".utf8) + [0]])
        #expect(address.end == .established && address.rest == Self.later)
        let name = ProxyConversation.inAllPieces(try SOCKS4Client(to: .name, user: ""), Self.granted4)
        #expect(name.sent == [[4, 1, 1, 187, 0, 0, 0, 1, 0] + Array("server.test".utf8) + [0]])
    }

    @Test func refusalOfSOCKS4IsReported() throws {
        for code in UInt8(91)...94 {
            let talk = ProxyConversation.inAllPieces(try SOCKS4Client(to: .ipv4, user: ""), [0, code])
            #expect(talk.end == .fail(.refusedBySOCKS(version: 4, code: code)))
        }
        let other = ProxyConversation(try SOCKS4Client(to: .ipv4, user: ""), [5, 0], piece: 2)
        if case .fail(.violation) = other.end {} else { Issue.record("accepted SOCKS 5") }
    }

    @Test func destinationThatSOCKS4CannotExpressIsRefused() throws {
        #expect(throws: ProxyFailure.self) { try SOCKS4Client(to: .ipv6, user: "") }
        #expect(throws: ProxyFailure.self) { try SOCKS4Client(to: .ipv4, user: "a\0b") }
        #expect(throws: ProxyFailure.self) { try SOCKS4Client(to: .name("a\0b", port: 1), user: "") }
        #expect(throws: ProxyFailure.self) {
            try SOCKS4Client(to: .ipv4, user: String(repeating: "x", count: 256))
        }
    }

    private enum State4: CaseIterable {
        case initial, awaitingReply, established, failed
    }

    @Test func everyEventIsHandledInEveryStateOfSOCKS4() throws {
        for state in State4.allCases {
            for event in ProxyEvent.allCases {
                var client = try SOCKS4Client(to: .ipv4, user: "")
                if state != .initial { _ = client.begin() }
                var consumed = 0
                let bytes = state == .established ? Self.granted4 : state == .failed ? [5] : []
                _ = bytes.withRawSpan { client.bytesReceived($0, consumed: &consumed) }
                let action = event.apply(to: &client)
                switch (state, event) {
                case (.initial, .begin): #expect(action == .send([4, 1, 0, 80, 192, 0, 2, 1, 0]))
                case (.established, _), (.failed, _), (_, .begin), (_, .authorized):
                    #expect(action == .wait, "\(state) \(event)")
                case (_, .inputClosed): #expect(action == .fail(.closed))
                case (_, .deadline): #expect(action == .fail(.timedOut))
                case (_, .garbage):
                    if case .fail(.violation) = action {} else { Issue.record("\(state) \(event): \(action)") }
                }
            }
        }
    }
}
