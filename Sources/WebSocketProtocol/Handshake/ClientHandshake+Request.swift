extension ClientHandshake {
    /// The whole request; no frame may follow it before the answer is there.
    ///
    /// Nothing can add a line to it: fields that are malformed or the handshake's own are left out, and so are
    /// subprotocols that are no tokens; characters that neither a target nor a host may have are percent-encoded.
    /// - Parameter nonce: 16 bytes of chance, new for every handshake (RFC 6455 §4.1).
    public func rendered(nonce: [UInt8]) -> [UInt8] {
        let own = self.fields.filter { $0.isWellFormed && !ReservedFields.inRequest($0.name) }
        let host = own.first { $0.name.matchesIgnoringCase("Host") }
        var request = Array("GET \(Self.encoded(self.target)) HTTP/1.1\r\n".utf8)
        (host ?? HTTPField("Host", Self.encoded(self.authority))).append(to: &request)
        request += Array("Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n".utf8)
        HTTPField("Sec-WebSocket-Key", Self.key(nonce)).append(to: &request)
        let subprotocols = self.subprotocols.filter(\.isToken)
        if !subprotocols.isEmpty, !own.contains(where: { $0.name.matchesIgnoringCase("Sec-WebSocket-Protocol") }) {
            HTTPField("Sec-WebSocket-Protocol", subprotocols.joined(separator: ", ")).append(to: &request)
        }
        if !self.offers.isEmpty {
            let list = self.offers.map(\.named.rendered).joined(separator: ", ")
            HTTPField("Sec-WebSocket-Extensions", list).append(to: &request)
        }
        for field in own where !field.name.matchesIgnoringCase("Host") { field.append(to: &request) }
        return request + Array("\r\n".utf8)
    }

    private static func encoded(_ text: String) -> String {
        if text.utf8.allSatisfy(\.isVisibleASCII) { return text }
        let digits = Array("0123456789ABCDEF".utf8)
        let bytes = text.utf8.flatMap { byte -> [UInt8] in
            byte.isVisibleASCII ? [byte] : [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
