/// The client's side of the opening handshake: what to ask for, the request, and the judgement of its answer.
public struct ClientHandshake: Equatable, Sendable {
    /// Host, and port unless it is the usual one, as they go into the Host field; an IPv6 address in brackets.
    public let authority: String
    /// Path and query, percent-encoded.
    public let target: String
    /// Offered, in our order of preference.
    public let subprotocols: [String]
    /// Offers of permessage-deflate, in our order of preference. See `DeflatePolicy.offers`.
    public let offers: [PermessageDeflateOffer]
    /// Further fields, such as Origin and Cookie. A Host among them counts instead of `authority`, and a
    /// Sec-WebSocket-Protocol instead of `subprotocols`; both are then written as they are.
    public let fields: [HTTPField]

    /// Takes what it is given; `validate()` tells what of it cannot be written.
    public init(
        authority: String, target: String, subprotocols: [String] = [], offers: [PermessageDeflateOffer] = [],
        fields: [HTTPField] = []
    ) {
        self.authority = authority
        self.target = target.isEmpty ? "/" : target
        self.subprotocols = subprotocols
        self.offers = offers
        self.fields = fields
    }

    /// - Parameters:
    ///   - host: a name or an address; an IPv6 address with or without brackets, its zone is left out.
    ///   - port: `nil` for the usual one.
    ///   - isSecure: whether the usual port is 443 (`wss`) or 80 (`ws`).
    ///   - target: empty counts as `/`.
    /// - Throws: whatever `validate()` finds.
    public init(
        host: String, port: Int? = nil, isSecure: Bool, target: String, subprotocols: [String] = [],
        offers: [PermessageDeflateOffer] = [], fields: [HTTPField] = []
    ) throws(HandshakeUsageError) {
        self.init(
            authority: Authority.rendered(host: host, port: port, isSecure: isSecure), target: target,
            subprotocols: subprotocols, offers: offers, fields: fields)
        try self.validate()
    }

    /// `Sec-WebSocket-Key` for a nonce.
    static func key(_ nonce: [UInt8]) -> String { Base64.encode(nonce) }

    /// What the server may choose from.
    var offeredSubprotocols: [String] {
        let own = HTTPFields(self.fields).list("Sec-WebSocket-Protocol")
        return own.isEmpty ? self.subprotocols : own
    }

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
            let list = self.offers.map(\.extensionElement.rendered).joined(separator: ", ")
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

    /// Judges the server's answer by RFC 6455 §4.1.
    ///
    /// An interim response (`ResponseHead.isInterim`) is not an answer yet: read on to the next head instead of asking
    /// here.
    /// - Parameter nonce: the one that the request was rendered with.
    /// - Returns: else `.refused` for any status but 101, and `.invalid` for the first rule that a 101 breaks.
    public func check(_ response: ResponseHead, nonce: [UInt8]) -> Result<ClientAcceptance, HandshakeFailure> {
        guard response.status == 101 else { return .failure(.refused(response)) }
        do throws(ResponseViolation) {
            try Self.checkUpgrade(response, key: Self.key(nonce))
            return .success(
                ClientAcceptance(
                    response: response, subprotocol: try self.subprotocol(response), deflate: try self.deflate(response)
                ))
        } catch {
            return .failure(.invalid(response, error))
        }
    }

    private static func checkUpgrade(_ response: ResponseHead, key: String) throws(ResponseViolation) {
        guard response.version >= .http11, response.version.major == 1 else { throw .wrongHTTPVersion }
        guard response.fields.list("Upgrade", contains: "websocket") else { throw .missingUpgrade }
        guard response.fields.list("Connection", contains: "upgrade") else { throw .missingConnectionUpgrade }
        let accepts = response.fields.values("Sec-WebSocket-Accept")
        guard accepts == [AcceptKey.value(for: key)] else { throw .wrongAccept }
    }

    private func subprotocol(_ response: ResponseHead) throws(ResponseViolation) -> String? {
        let values = response.fields.values("Sec-WebSocket-Protocol")
        guard let chosen = values.first else { return nil }
        // A comma cannot be part of a subprotocol, so this is a list.
        guard values.count == 1, !chosen.utf8.contains(UInt8(ascii: ",")) else { throw .severalSubprotocols }
        guard self.offeredSubprotocols.contains(chosen) else { throw .subprotocolNotOffered(chosen) }
        return chosen
    }

    private func deflate(_ response: ResponseHead) throws(ResponseViolation) -> PermessageDeflateParameters? {
        let values = response.fields.values("Sec-WebSocket-Extensions")
        guard let accepted = try? ExtensionGrammar.parse(values) else { throw .malformedExtensions }
        guard let first = accepted.first else { return nil }
        for named in accepted where self.offers.isEmpty || named.name != ParsedDeflateParameters.extensionName {
            throw .extensionNotOffered(named.name)
        }
        guard accepted.count == 1 else { throw .repeatedExtension(first.name) }
        guard let parameters = PermessageDeflateParameters(first),
            let offer = self.offers.first(where: { parameters.satisfies($0) })
        else { throw .illegalExtensionParameters(first.rendered) }
        return parameters.applyingClientLimits(of: offer)
    }

    /// Says what of this handshake cannot be written as it is, for callers whose input is not their own.
    ///
    /// - Throws: the first thing that `rendered(nonce:)` would have to leave out or change, or that contradicts itself.
    public func validate() throws(HandshakeUsageError) {
        let isVisible = self.target.utf8.allSatisfy { $0.isVisibleASCII && $0 != UInt8(ascii: "#") }
        guard self.target.utf8.first == UInt8(ascii: "/"), isVisible else { throw .malformedTarget(self.target) }
        try self.validateFields()
        try self.validateSubprotocols()
        for offer in self.offers {
            if let bits = offer.serverMaxWindowBits, !(8...15).contains(bits) { throw .malformedOffer(offer) }
            if case .limited(let bits) = offer.clientWindow, !(8...15).contains(bits) { throw .malformedOffer(offer) }
        }
    }

    private func validateFields() throws(HandshakeUsageError) {
        for field in self.fields {
            guard field.isWellFormed else { throw .malformedField(field) }
            if ReservedFields.inRequest(field.name) { throw .reservedField(field.name) }
        }
        let hosts = HTTPFields(self.fields).values("Host")
        guard hosts.count <= 1 else { throw .reservedField("Host") }
        let authority = hosts.first ?? self.authority
        guard Authority.isWellFormed(authority) else { throw .malformedAuthority(authority) }
    }

    private func validateSubprotocols() throws(HandshakeUsageError) {
        guard HTTPFields(self.fields)["Sec-WebSocket-Protocol"] == nil || self.subprotocols.isEmpty else {
            throw .subprotocolsGivenTwice
        }
        for (index, subprotocol) in self.subprotocols.enumerated() {
            guard subprotocol.isToken else { throw .malformedSubprotocol(subprotocol) }
            guard !self.subprotocols[..<index].contains(subprotocol) else { throw .repeatedSubprotocol(subprotocol) }
        }
    }
}

/// A good answer to our opening handshake, and what both sides have agreed on with it.
public struct ClientAcceptance: Equatable, Sendable {
    /// The response as it came.
    public let response: ResponseHead
    /// The subprotocol that the server chose, if any.
    public let subprotocol: String?
    /// Compression, if agreed on.
    public let deflate: PermessageDeflateParameters?
}
