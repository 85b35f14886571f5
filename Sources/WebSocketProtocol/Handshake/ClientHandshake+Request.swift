/// The checks of what goes into the request.
extension ClientHandshake {
    static func check(_ offers: [PermessageDeflateOffer]) throws(HandshakeUsageError) {
        for offer in offers {
            if let bits = offer.serverMaxWindowBits, !(8...15).contains(bits) { throw .malformedOffer(offer) }
            if case .limited(let bits) = offer.clientWindow, !(8...15).contains(bits) { throw .malformedOffer(offer) }
        }
    }

    /// What the server may choose from: the list, or what the caller's own field holds.
    static func subprotocols(_ list: [String], in fields: [HTTPField]) throws(HandshakeUsageError) -> [String] {
        let own = HTTPFields(fields)
        guard own["Sec-WebSocket-Protocol"] == nil else {
            guard list.isEmpty else { throw .subprotocolsGivenTwice }
            return own.list("Sec-WebSocket-Protocol")
        }
        for (index, subprotocol) in list.enumerated() {
            guard subprotocol.isToken else { throw .malformedSubprotocol(subprotocol) }
            guard !list[..<index].contains(subprotocol) else { throw .repeatedSubprotocol(subprotocol) }
        }
        return list
    }

    static func checked(target: String) throws(HandshakeUsageError) -> String {
        if target.isEmpty { return "/" }
        let isVisible = target.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "#") }
        guard target.utf8.first == UInt8(ascii: "/"), isVisible else { throw .malformedTarget(target) }
        return target
    }

    static func hostField(
        host: String, port: Int?, isSecure: Bool, fields: [HTTPField]
    ) throws(HandshakeUsageError) -> HTTPField {
        let own = HTTPFields(fields).values("Host")
        if let value = own.first {
            guard own.count == 1, Authority.isWellFormed(value) else { throw .malformedHost(value) }
            return HTTPField("Host", value)
        }
        let bracketed = Self.bracketed(host)
        guard Authority.isHost(Array(bracketed.utf8)) else { throw .malformedHost(host) }
        guard let port, port != (isSecure ? 443 : 80) else { return HTTPField("Host", bracketed) }
        guard (1...65535).contains(port) else { throw .malformedPort(port) }
        return HTTPField("Host", "\(bracketed):\(port)")
    }

    /// An IPv6 address needs brackets beside a port, and its zone means nothing to the peer (RFC 6874 §4).
    private static func bracketed(_ host: String) -> String {
        guard host.utf8.contains(UInt8(ascii: ":")) else { return host }
        let bare = host.hasPrefix("[") && host.hasSuffix("]") ? host.dropFirst().dropLast() : host[...]
        return "[" + bare.prefix { $0 != "%" } + "]"
    }
}
