import ByteKernels
import SessionTasks
import StreamTransport
import Testing
import WireText

/// The actions of a proxy's client for the bytes of a proxy.
struct ProxyConversation: Equatable {
    var sent: [[UInt8]] = []
    var end: ProxyAction?
    /// Bytes that were not consumed.
    var rest: [UInt8] = []

    /// - Parameter piece: bytes given at a time.
    init(_ start: some ProxyClient, _ bytes: [UInt8], piece: Int) {
        var client = start
        self.take(client.begin())
        var held: [UInt8] = []
        for start in stride(from: 0, to: bytes.count, by: piece) {
            held += bytes[start..<min(start + piece, bytes.count)]
            var consumed = 0
            while self.end == nil {
                let action = held.withRawSpan { client.bytesReceived($0, consumed: &consumed) }
                if action == .wait { break }
                self.take(action)
            }
            held.removeFirst(consumed)
        }
        self.rest = held
    }

    private mutating func take(_ action: ProxyAction) {
        switch action {
        case .wait: break
        case .send(let bytes): self.sent.append(bytes)
        case .authorize, .established, .fail: self.end = action
        }
    }

    /// The same conversation in pieces of every size.
    static func inAllPieces(
        _ client: some ProxyClient, _ bytes: [UInt8], sourceLocation: SourceLocation = #_sourceLocation
    ) -> ProxyConversation {
        let whole = ProxyConversation(client, bytes, piece: max(1, bytes.count))
        for piece in 1..<max(2, bytes.count) {
            let other = ProxyConversation(client, bytes, piece: piece)
            #expect(other == whole, "in pieces of \(piece)", sourceLocation: sourceLocation)
        }
        return whole
    }
}

extension ProxyDestination {
    static let name = Self.name("server.test", port: 443)
    /// 192.0.2.1.
    static let ipv4 = Self.address(.ipv4(address: 0xC000_0201, port: 80))
    /// 2001:db8::1.
    static let ipv6 = Self.address(.ipv6(high: 0x2001_0DB8_0000_0000, low: 1, scope: 0, port: 80))
}

/// Events of a proxy's handshake, for the tables of states.
enum ProxyEvent: CaseIterable {
    case begin, garbage, inputClosed, deadline, authorized

    func apply(to client: inout some ProxyClient) -> ProxyAction {
        switch self {
        case .begin: return client.begin()
        case .garbage:
            var consumed = 0
            let bytes: [UInt8] = [0x0A]
            return bytes.withRawSpan { client.bytesReceived($0, consumed: &consumed) }
        case .inputClosed: return client.inputClosed()
        case .deadline: return client.deadlinePassed()
        case .authorized: return client.authorized([FieldLine("Proxy-Authorization", "NTLM eHl6")])
        }
    }
}
