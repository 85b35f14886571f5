import StreamTransport

/// The client of a SOCKS 5 proxy that asks for one connection (RFC 1928), with user name and password if there are any
/// (RFC 1929).
package struct SOCKS5Client: SOCKSClient {
    private enum State: Equatable {
        case initial
        case awaitingMethod([UInt8])
        case awaitingAuthentication([UInt8])
        case awaitingReply([UInt8])
        case finished
    }

    private static let version: UInt8 = 5
    private static let noAuthentication: UInt8 = 0
    private static let userAndPassword: UInt8 = 2

    private var state = State.initial
    /// The request of RFC 1929; `nil` without a credential.
    private let authentication: [UInt8]?
    private let request: [UInt8]

    /// - Parameter credential: its password may be empty, which RFC 1929 §2 does not allow and servers accept.
    /// - Throws: `.inexpressible` for an empty name or user name, and for texts of more than 255 bytes.
    package init(to destination: ProxyDestination, credential: ProxyCredential?) throws(ProxyFailure) {
        self.authentication = try credential.map { credential throws(ProxyFailure) in
            let user = try Self.text(credential.user, "user name")
            return [1] + user + (credential.password.isEmpty ? [0] : try Self.text(credential.password, "password"))
        }
        self.request = [Self.version, 1, 0] + (try Self.address(destination))
    }

    /// A length byte and the text.
    private static func text(_ text: String, _ name: String) throws(ProxyFailure) -> [UInt8] {
        guard let count = UInt8(exactly: text.utf8.count), count > 0 else {
            throw .inexpressible("SOCKS 5 cannot express a \(name) that is empty or longer than 255 bytes")
        }
        return [count] + Array(text.utf8)
    }

    private static func address(_ destination: ProxyDestination) throws(ProxyFailure) -> [UInt8] {
        switch destination {
        case .name(let name, let port): return [3] + (try self.text(name, "host name")) + port.networkBytes
        case .address(.ipv4(let address, let port)): return [1] + address.networkBytes + port.networkBytes
        case .address(.ipv6(let high, let low, _, let port)):
            return [4] + high.networkBytes + low.networkBytes + port.networkBytes
        case .address(.unix): throw .inexpressible("no proxy leads to a Unix socket")
        }
    }

    package mutating func begin() -> ProxyAction {
        guard self.state == .initial else { return .wait }
        self.state = .awaitingMethod([])
        guard self.authentication != nil else { return .send([Self.version, 1, Self.noAuthentication]) }
        return .send([Self.version, 2, Self.noAuthentication, Self.userAndPassword])
    }

    package var isFinished: Bool { self.state == .finished }

    package mutating func received(_ byte: UInt8) -> ProxyAction {
        switch self.state {
        case .initial: return self.fail(.violation("it sent bytes before the client did"))
        case .awaitingMethod(let bytes): return self.methodReceived(bytes + [byte])
        case .awaitingAuthentication(let bytes): return self.authenticationReceived(bytes + [byte])
        case .awaitingReply(let bytes): return self.replyReceived(bytes + [byte])
        case .finished: return .wait
        }
    }

    private mutating func methodReceived(_ bytes: [UInt8]) -> ProxyAction {
        guard bytes[0] == Self.version else { return self.fail(.violation("it does not speak SOCKS 5")) }
        self.state = .awaitingMethod(bytes)
        guard bytes.count == 2 else { return .wait }
        switch (bytes[1], self.authentication) {
        case (Self.noAuthentication, _): return self.sendRequest()
        case (Self.userAndPassword, let authentication?):
            self.state = .awaitingAuthentication([])
            return .send(authentication)
        case (0xFF, _): return self.fail(.noAcceptableMethod(hasCredential: self.authentication != nil))
        default: return self.fail(.violation("it chose a method of authentication that was not offered"))
        }
    }

    /// Only the status counts: some proxies answer with another version than RFC 1929 §2 demands.
    private mutating func authenticationReceived(_ bytes: [UInt8]) -> ProxyAction {
        self.state = .awaitingAuthentication(bytes)
        guard bytes.count == 2 else { return .wait }
        return bytes[1] == 0 ? self.sendRequest() : self.fail(.credentialRefused)
    }

    private mutating func sendRequest() -> ProxyAction {
        self.state = .awaitingReply([])
        return .send(self.request)
    }

    /// At most 262 bytes: version, code, a reserved byte, the kind of address, the address, and its port.
    private mutating func replyReceived(_ bytes: [UInt8]) -> ProxyAction {
        self.state = .awaitingReply(bytes)
        switch bytes.count {
        case 1: return bytes[0] == Self.version ? .wait : self.fail(.violation("its reply is not that of SOCKS 5"))
        // Some proxies close right behind the code of a refusal.
        case 2: return bytes[1] == 0 ? .wait : self.fail(.refusedBySOCKS(version: 5, code: bytes[1]))
        case 3: return .wait
        default: break
        }
        let length: Int
        switch bytes[3] {
        case 1: length = 4
        case 3:
            guard bytes.count > 4 else { return .wait }
            length = 1 + Int(bytes[4])
        case 4: length = 16
        default: return self.fail(.violation("its reply has an address of an unknown kind"))
        }
        guard bytes.count == 4 + length + 2 else { return .wait }
        self.state = .finished
        return .established
    }

    package mutating func fail(_ failure: ProxyFailure) -> ProxyAction {
        self.state = .finished
        return .fail(failure)
    }
}

/// User name and password for a proxy.
package struct ProxyCredential: Hashable, Sendable {
    package let user: String
    package let password: String

    package init(user: String, password: String) {
        self.user = user
        self.password = password
    }
}

extension FixedWidthInteger {
    /// The most significant byte first.
    var networkBytes: [UInt8] {
        stride(from: Self.bitWidth - 8, through: 0, by: -8).map { UInt8(truncatingIfNeeded: self >> Self($0)) }
    }
}
