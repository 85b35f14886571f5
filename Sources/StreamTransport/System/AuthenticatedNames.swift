import ByteKernels
import CLinux

/// Looks names up in DNS with answers that the name server has authenticated (RFC 4035).
///
/// The server validates the signatures and says so with the AD bit, which is worth as much as the way to the server: only
/// the word of one on this machine, or of one that resolv.conf(5) trusts (`trust-ad`), is taken.
enum AuthenticatedNames {
    /// The largest message of DNS.
    private static let answerLimit = 65_535
    private static let types: [Int32] = [1, 28]

    /// Blocks, as the C library's timeouts allow.
    /// - Parameter server: an IPv4 address, asked instead of the system's servers and trusted; `nil` outside of tests.
    static func addresses(
        of host: String, port: UInt16, server: SocketAddress?
    ) -> Result<[SocketAddress], ResolutionFailure> {
        if Self.isLocal(host) { return .success(Self.loopback(port)) }
        if server == nil, !NameServers.system.validate {
            return .failure(
                .notAuthenticated(
                    "the name servers are on other machines, and /etc/resolv.conf does not trust them (trust-ad)"))
        }
        var (found, failure) = ([SocketAddress](), ResolutionFailure.nameNotFound)
        for type in Self.types {
            switch Self.ask(host, type, server) {
            case .success(let answer) where answer.isAuthenticated: found += answer.addresses
            case .success(let answer) where !answer.addresses.isEmpty:
                failure = .notAuthenticated("the answer of the name server is not signed")
            case .success: break
            case .failure(.nameNotFound): break
            case .failure(let error): failure = error
            }
        }
        return found.isEmpty ? .failure(failure) : .success(found.map { $0.with(port: port) })
    }

    private static func ask(
        _ host: String, _ type: Int32, _ server: SocketAddress?
    ) -> Result<NameAnswer, ResolutionFailure> {
        var (address, serverPort) = (UInt32(0), UInt16(0))
        if case .ipv4(let number, let port) = server { (address, serverPort) = (number, port) }
        var bytes = [UInt8](repeating: 0, count: Self.answerLimit)
        let count = unsafe sluice_query_authenticated(host, type, address, serverPort, &bytes, Int32(bytes.count))
        switch count {
        case -1, -4: return .failure(.nameNotFound)
        // A server that finds forged records answers as one that fails.
        case -2: return .failure(NameServers.haveRoute || server != nil ? .temporarilyUnavailable : .noRoute)
        case ...0: return .failure(.failed("the name server refused the question"))
        default:
            bytes.removeLast(bytes.count - min(bytes.count, Int(count)))
            return bytes.withRawSpan { NameAnswer($0) }.map { .success($0) } ?? .failure(.failed("a malformed answer"))
        }
    }

    /// RFC 6761 §6.3: never asked for in DNS.
    static func isLocal(_ host: String) -> Bool {
        var name = host.lowercased()
        if name.hasSuffix(".") { name.removeLast() }
        return name == "localhost" || name.hasSuffix(".localhost")
    }

    static func loopback(_ port: UInt16) -> [SocketAddress] {
        [.ipv4(address: 0x7F00_0001, port: port), .ipv6(high: 0, low: 1, scope: 0, port: port)]
    }
}

extension NameServers {
    /// Whether their word about the authenticity of an answer counts. Without an entry the C library asks this machine.
    fileprivate var validate: Bool { self.areTrusted || self.addresses.allSatisfy(\.isLoopback) }
}

/// An answer of DNS (RFC 1035 §4.1), as far as it is about addresses.
package struct NameAnswer: Equatable, Sendable {
    /// More are ignored.
    package static let addressLimit = 64

    /// The server says that it has validated all of the answer (RFC 4035 §3.2.3).
    package let isAuthenticated: Bool
    /// With port 0.
    package private(set) var addresses: [SocketAddress] = []

    /// - Returns: `nil` for a malformed or incomplete message.
    package init?(_ bytes: RawSpan) {
        guard bytes.byteCount >= 12, bytes[byte: 2] & 0x80 != 0 else { return nil }
        self.isAuthenticated = bytes[byte: 3] & 0x20 != 0
        var offset = 12
        for _ in 0..<Self.number(bytes, 4) {
            guard let end = Self.skipName(bytes, offset), end + 4 <= bytes.byteCount else { return nil }
            offset = end + 4
        }
        for _ in 0..<Self.number(bytes, 6) {
            guard let end = Self.skipName(bytes, offset), end + 10 <= bytes.byteCount else { return nil }
            let length = Self.number(bytes, end + 8)
            offset = end + 10 + length
            guard offset <= bytes.byteCount else { return nil }
            let data = bytes.extracting((end + 10)..<offset)
            let isInternet = Self.number(bytes, end + 2) == 1
            guard isInternet, self.addresses.count < Self.addressLimit,
                let address = Self.address(Self.number(bytes, end), data)
            else { continue }
            self.addresses.append(address)
        }
    }

    private static func number(_ bytes: RawSpan, _ offset: Int) -> Int {
        Int(bytes[byte: offset]) << 8 | Int(bytes[byte: offset + 1])
    }

    /// - Returns: the offset behind a name, which may end in a pointer; `nil` if it does not end.
    private static func skipName(_ bytes: RawSpan, _ start: Int) -> Int? {
        var offset = start
        while offset < bytes.byteCount {
            switch bytes[byte: offset] {
            case 0: return offset + 1
            case let length where length < 0x40: offset += 1 + Int(length)
            case let length where length >= 0xC0: return offset + 2
            default: return nil
            }
        }
        return nil
    }

    private static func address(_ type: Int, _ data: RawSpan) -> SocketAddress? {
        switch (type, data.byteCount) {
        case (1, 4): return .ipv4(address: data[bigEndianWord: 0], port: 0)
        case (28, 16):
            let words = (0..<4).map { UInt64(data[bigEndianWord: 4 * $0]) }
            return .ipv6(high: words[0] << 32 | words[1], low: words[2] << 32 | words[3], scope: 0, port: 0)
        default: return nil
        }
    }
}
