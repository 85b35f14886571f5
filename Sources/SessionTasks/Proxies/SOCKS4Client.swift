import StreamTransport

/// The client of a SOCKS 4 proxy that asks for one connection; a name is left to the proxy as in SOCKS 4a.
package struct SOCKS4Client: SOCKSClient {
    private enum State: Equatable {
        case initial
        case awaitingReply([UInt8])
        case finished
    }

    private static let textLimit = 255
    private static let granted: UInt8 = 90

    private var state = State.initial
    private let request: [UInt8]

    /// - Parameter user: sent as it is; most proxies ignore it.
    /// - Throws: `.inexpressible` for an IPv6 address, and for texts with a NUL or of more than 255 bytes.
    package init(to destination: ProxyDestination, user: String) throws(ProxyFailure) {
        let user = try Self.text(user, "user name")
        switch destination {
        case .address(.ipv4(let address, let port)):
            self.request = [4, 1] + port.networkBytes + address.networkBytes + user
        case .name(let name, let port):
            // The address 0.0.0.1 announces a name.
            self.request = [4, 1] + port.networkBytes + [0, 0, 0, 1] + user + (try Self.text(name, "host name"))
        case .address(.ipv6): throw .inexpressible("SOCKS 4 has no IPv6 addresses; use SOCKS 5")
        case .address(.unix): throw .inexpressible("no proxy leads to a Unix socket")
        }
    }

    /// The text and a NUL.
    private static func text(_ text: String, _ name: String) throws(ProxyFailure) -> [UInt8] {
        guard text.utf8.count <= Self.textLimit, !text.utf8.contains(0) else {
            throw .inexpressible("SOCKS 4 cannot express this \(name)")
        }
        return Array(text.utf8) + [0]
    }

    package mutating func begin() -> ProxyAction {
        guard self.state == .initial else { return .wait }
        self.state = .awaitingReply([])
        return .send(self.request)
    }

    package var isFinished: Bool { self.state == .finished }

    /// The reply has 8 bytes: a version, which is 0, a code, and an address without meaning.
    package mutating func received(_ byte: UInt8) -> ProxyAction {
        switch self.state {
        case .initial: return self.fail(.violation("it sent bytes before the client did"))
        case .finished: return .wait
        case .awaitingReply(let earlier):
            let bytes = earlier + [byte]
            self.state = .awaitingReply(bytes)
            switch bytes.count {
            case 1: return byte == 0 ? .wait : self.fail(.violation("its reply is not that of SOCKS 4"))
            case 2: return byte == Self.granted ? .wait : self.fail(.refusedBySOCKS(version: 4, code: byte))
            case 8:
                self.state = .finished
                return .established
            default: return .wait
            }
        }
    }

    package mutating func fail(_ failure: ProxyFailure) -> ProxyAction {
        self.state = .finished
        return .fail(failure)
    }
}
