import StreamTransport
import TLSEngine
import WebSocketProtocol

/// The client's side of a proxy's handshake, without IO: SOCKS, or HTTP `CONNECT`.
package protocol ProxyClient: Sendable {
    /// Called first, once.
    mutating func begin() -> ProxyAction

    /// Reads the proxy's next bytes from offset `consumed` on and advances it, never past the handshake: what follows is
    /// the server's. Call it again for the rest after `.send`.
    mutating func bytesReceived(_ bytes: RawSpan, consumed: inout Int) -> ProxyAction

    /// The proxy finished sending.
    mutating func inputClosed() -> ProxyAction

    /// The time for the handshake, or for the content of a refusal, is over.
    mutating func deadlinePassed() -> ProxyAction

    /// Whether the proxy has refused, and only the content of its answer is read.
    var isRefused: Bool { get }

    /// Repeats the request, after `.authorize`.
    /// - Parameter fields: instead of those of the request before.
    mutating func authorized(_ fields: [FieldLine]) -> ProxyAction
}

extension ProxyClient {
    package var isRefused: Bool { false }

    package mutating func authorized(_ fields: [FieldLine]) -> ProxyAction { .wait }
}

package enum ProxyAction: Equatable, Sendable {
    case wait
    case send([UInt8])
    /// The connection now leads to the server.
    case established
    /// The proxy continues the authentication of the connection: the request is to be repeated on it.
    case authorize(ResponseHead)
    case fail(ProxyFailure)
}

/// Why no connection was established through a proxy.
package enum ProxyFailure: Error, Hashable, Sendable {
    /// No connection to the proxy, or it was lost during the handshake.
    indirect case connection(TransportFailure)
    /// TLS with the proxy itself failed.
    case securing(TLSFailure)
    /// The answer to `CONNECT` was no 2xx.
    /// - Parameter text: the beginning of its content if that is plain text, else empty.
    case refused(ResponseHead, text: String)
    /// A SOCKS proxy did not grant the request.
    /// - Parameter version: 4 or 5.
    case refusedBySOCKS(version: Int, code: UInt8)
    /// The SOCKS proxy accepts no method of authentication that can be used.
    case noAcceptableMethod(hasCredential: Bool)
    /// The SOCKS proxy refused user name and password.
    case credentialRefused
    /// The proxy broke a rule of its protocol.
    case violation(String)
    /// The proxy closed the connection during the handshake.
    case closed
    /// The handshake took too long.
    case timedOut
    /// The proxy's protocol cannot express the request. Nothing was sent.
    case inexpressible(String)
}

extension ProxyFailure: CustomStringConvertible {
    /// Whether another proxy may do what this one did not; `false` where it refused.
    package var isUnreachable: Bool {
        switch self {
        case .connection, .securing, .violation, .closed, .timedOut: true
        case .refused, .refusedBySOCKS, .noAcceptableMethod, .credentialRefused, .inexpressible: false
        }
    }

    package var description: String {
        switch self {
        case .connection(let failure): "no connection to the proxy: \(failure)"
        case .securing(let failure): "no TLS with the proxy: \(failure)"
        case .refused(let head, let text):
            "the proxy answered \(head.status)" + (head.reason.isEmpty ? "" : " \(head.reason)")
                + (text.isEmpty ? "" : ": \(text)")
        case .refusedBySOCKS(5, let code): "the proxy refused: \(Self.meaning(ofSOCKS5: code))"
        case .refusedBySOCKS(_, let code): "the proxy refused: \(Self.meaning(ofSOCKS4: code))"
        case .noAcceptableMethod(hasCredential: false): "the proxy requires authentication"
        case .noAcceptableMethod(hasCredential: true): "the proxy does not accept a user name and password"
        case .credentialRefused: "the proxy refused the user name or the password"
        case .violation(let text): "the proxy broke its protocol: \(text)"
        case .closed: "the proxy closed the connection during the handshake"
        case .timedOut: "the proxy did not answer in time"
        case .inexpressible(let text): text
        }
    }

    /// RFC 1928 §6.
    private static func meaning(ofSOCKS5 code: UInt8) -> String {
        switch code {
        case 1: "general failure"
        case 2: "not allowed by its rules"
        case 3: "network unreachable"
        case 4: "host unreachable"
        case 5: "connection refused"
        case 6: "TTL expired"
        case 7: "command not supported"
        case 8: "address type not supported"
        default: "code \(code)"
        }
    }

    private static func meaning(ofSOCKS4 code: UInt8) -> String {
        switch code {
        case 91: "rejected or failed"
        case 92: "it cannot reach identd on the client"
        case 93: "identd reports another user"
        default: "code \(code)"
        }
    }
}

extension TransportFailure {
    package init(_ failure: ProxyFailure) {
        self = .proxy(LayerFailure(failure))
    }

    /// The failure to get through a proxy; `nil` for other failures.
    package var proxyFailure: ProxyFailure? {
        if case .proxy(let layer) = self { layer.cause as? ProxyFailure } else { nil }
    }
}

/// The server that a proxy connects to.
package enum ProxyDestination: Hashable, Sendable {
    /// Resolved by the proxy.
    case name(String, port: UInt16)
    /// An IPv4 or IPv6 address.
    case address(SocketAddress)

    /// - Returns: `nil` for a Unix socket.
    package init?(_ place: ConnectTarget) {
        switch place {
        case .host(let host, let port):
            self = SocketAddress(literal: host, port: port).map { .address($0) } ?? .name(host, port: port)
        case .address(.unix): return nil
        case .address(let address): self = .address(address)
        }
    }

    /// Host and port, as in the request target of `CONNECT` (RFC 9112 §3.2.3).
    /// - Returns: `nil` if the name has characters that no name in a URL has.
    package var authority: String? {
        switch self {
        case .address(let address): return address.description
        case .name(let name, let port):
            guard !name.isEmpty, name.utf8.allSatisfy(Self.isNameCharacter) else { return nil }
            return "\(name):\(port)"
        }
    }

    /// RFC 3986 §3.2.2: reg-name.
    private static func isNameCharacter(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: "-._~%!$&'()*+,;=".utf8.contains(byte)
        }
    }
}
