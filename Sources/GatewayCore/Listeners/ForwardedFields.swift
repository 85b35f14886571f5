import GatewayConfiguration
import StreamTransport
import WireText

/// Fields that tell a WebSocket upstream who the client is: `X-Forwarded-For`, `-Proto`, `-Host`, and `Forwarded` (RFC
/// 7239).
///
/// Values from the client itself are dropped unless it is a trusted peer: then its lists are extended by our element,
/// and its scheme and host are kept. Most proxies send no `Forwarded`: what their other fields say begins it then, so that
/// both kinds of fields agree.
package struct ForwardedFields: Hashable, Sendable {
    package let forwarded: String
    /// `nil` where no address is known: a client on a Unix socket.
    package let forwardedFor: String?
    package let forwardedProto: String
    package let forwardedHost: String?

    /// - Parameter trusted: whether the peer's own fields are trusted.
    package init(_ request: ForwardedRequest, trusted: Bool) {
        let scheme = request.isSecure ? "https" : "http"
        let host = request.host.flatMap { Self.isSendable($0) ? $0 : nil }
        var element = "for=\(Self.node(request.client));proto=\(scheme)"
        if let host { element += ";host=\(Self.quoted(host))" }
        let known = trusted ? request : ForwardedRequest(client: request.client, isSecure: request.isSecure, host: nil)
        // After a string without an end, our element would be a part of it.
        let isExtended = !known.forwarded.isEmpty && known.forwarded.allSatisfy { Self.endsItsStrings($0) }
        self.forwarded = Self.list(isExtended ? known.forwarded : Self.elements(known), element)
        let addresses = Self.list(known.forwardedFor, Self.address(request.client))
        self.forwardedFor = addresses.isEmpty ? nil : addresses
        self.forwardedProto = Self.first(known.forwardedProto) ?? scheme
        self.forwardedHost = Self.first(known.forwardedHost) ?? host
    }

    /// Name and value of each, in the order to send them.
    package var fields: [(name: String, value: String)] {
        var fields = [("Forwarded", self.forwarded)]
        if let value = self.forwardedFor { fields.append(("X-Forwarded-For", value)) }
        fields.append(("X-Forwarded-Proto", self.forwardedProto))
        if let value = self.forwardedHost { fields.append(("X-Forwarded-Host", value)) }
        return fields.map { (name: $0.0, value: $0.1) }
    }

    private static func address(_ client: SocketAddress) -> String? {
        switch client {
        case .ipv4(let bits, _): "\(IPAddress.v4(bits))"
        case .ipv6(let high, let low, _, _): "\(IPAddress.v6(high: high, low: low).unmapped)"
        case .unix: nil
        }
    }

    /// RFC 7239 §6: an IPv6 address is written in brackets, and with them or a port in quotes.
    /// - Parameter port: with its colon; empty for none.
    private static func node(_ client: SocketAddress, port: String = "") -> String {
        guard let address = Self.address(client) else { return "unknown" }
        return Self.quoted((address.utf8.contains(UInt8(ascii: ":")) ? "[\(address)]" : address) + port)
    }

    /// An element of `X-Forwarded-For`: an address. Some proxies add the client's port, and brackets to an IPv6 address.
    private static func node(_ text: String) -> String {
        if let address = SocketAddress(literal: text, port: 0) { return Self.node(address) }
        var host = Substring(text).utf8
        var port = ""
        if let colon = host.lastIndex(of: UInt8(ascii: ":")), Decimal.port(host[colon...].dropFirst()) != nil {
            port = String(Substring(host[colon...]))
            host = host[..<colon]
        }
        let isBracketed = host.first == UInt8(ascii: "[") && host.last == UInt8(ascii: "]")
        if isBracketed { host = host.dropFirst().dropLast() }
        guard let address = SocketAddress(literal: String(Substring(host)), port: 0) else { return "unknown" }
        return Self.node(address, port: port)
    }

    /// The elements of `Forwarded` that say the same as the other fields (RFC 7239 §7.4): an address for each proxy, and the
    /// scheme and host of the first request.
    private static func elements(_ known: ForwardedRequest) -> [String] {
        var elements = known.forwardedFor.filter { Self.isSendable($0) }
            .flatMap { FieldLines([FieldLine("X-Forwarded-For", $0)]).list("X-Forwarded-For") }
            .map { "for=" + Self.node($0) }
        var first: [String] = elements.isEmpty ? [] : [elements.removeFirst()]
        if let scheme = Self.first(known.forwardedProto) { first.append("proto=\(Self.quoted(scheme))") }
        if let host = Self.first(known.forwardedHost) { first.append("host=\(Self.quoted(host))") }
        return first.isEmpty ? [] : [first.joined(separator: ";")] + elements
    }

    private static func list(_ lines: [String], _ own: String?) -> String {
        (lines.filter { Self.isSendable($0) } + (own.map { [$0] } ?? [])).joined(separator: ", ")
    }

    /// The first of a list: each proxy of several may have added its own.
    private static func first(_ lines: [String]) -> String? {
        guard let line = lines.first(where: { Self.isSendable($0) }) else { return nil }
        return FieldLines([FieldLine("X-Forwarded", line)]).list("X-Forwarded").first
    }

    private static func endsItsStrings(_ line: String) -> Bool {
        var scanner = FieldValueScanner(line)
        while !scanner.isAtEnd {
            _ = scanner.text { $0 != UInt8(ascii: "\"") }
            guard scanner.isAtEnd || scanner.quotedString() != nil else { return false }
        }
        return true
    }

    /// No line ends or other control characters (RFC 9110 §5.5).
    private static func isSendable(_ value: String) -> Bool {
        !value.isEmpty && value.utf8.allSatisfy { (0x20...0x7E).contains($0) || $0 == 0x09 }
    }

    /// A token unchanged, else a quoted string (RFC 7239 §4, RFC 9110 §5.6.4).
    private static func quoted(_ value: String) -> String {
        guard !NameText.isToken(value) else { return value }
        return "\"" + value.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"") + "\""
    }
}

extension ListenerPlan {
    /// Whether the client is a proxy that names other clients in its requests.
    /// - Parameter client: the source in a PROXY header if there is one: it wrote the request, not the proxy that wrote the
    ///   header.
    func trustsFields(of client: SocketAddress) -> Bool {
        AddressSet(self.configuration.trustedForwarders).contains(client)
    }
}

/// Forwarding information of a client's opening handshake: what it sent, and what we know ourselves.
package struct ForwardedRequest: Hashable, Sendable {
    /// The peer of the connection, or the source of a trusted PROXY header.
    package var client: SocketAddress
    /// Whether the client spoke TLS to us.
    package var isSecure: Bool
    /// Its `Host` field; `nil` without one.
    package var host: String?
    /// Its own fields of these names, each line's value in order.
    package var forwarded: [String] = []
    package var forwardedFor: [String] = []
    package var forwardedProto: [String] = []
    package var forwardedHost: [String] = []

    package init(client: SocketAddress, isSecure: Bool, host: String?) {
        self.client = client
        self.isSecure = isSecure
        self.host = host
    }
}

/// Blocks of addresses.
package struct AddressSet: Hashable, Sendable {
    private let blocks: [AddressBlock]

    package init(_ blocks: [AddressBlock]) {
        self.blocks = blocks
    }

    /// Whether the peer's address lies in one of the blocks; IPv4 written as IPv6 counts as IPv4. A peer on a Unix
    /// socket counts as loopback.
    package func contains(_ peer: SocketAddress) -> Bool {
        let address = peer.ipAddress ?? .loopback
        return self.blocks.contains { $0.contains(address) }
    }
}
