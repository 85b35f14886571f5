import WireText

/// The client's side of the opening handshake: the request and the check of the response.
public struct ClientHandshake: Equatable, Sendable {
    /// The value of the Host field: host, and port unless it is the default one; an IPv6 address in brackets.
    public let authority: String
    /// Path and query, percent-encoded.
    public let target: String
    /// Offered subprotocols in order of preference.
    public let subprotocols: [String]
    /// Offers of permessage-deflate in order of preference. See `DeflatePolicy.offers`.
    public let offers: [PermessageDeflateOffer]
    /// Further fields, such as Origin and Cookie. Host replaces `authority`, and Sec-WebSocket-Protocol replaces
    /// `subprotocols`; both are written unchanged.
    public let fields: [HTTPField]

    /// Does not validate its arguments; see `validate()`.
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
    ///   - host: a name or an address; an IPv6 address with or without brackets, without its zone in the request.
    ///   - port: `nil` for the default one.
    ///   - isSecure: whether the default port is 443 (`wss`) or 80 (`ws`).
    ///   - target: an empty one means `/`.
    /// - Throws: the error of `validate()`.
    public init(
        host: String, port: Int? = nil, isSecure: Bool, target: String, subprotocols: [String] = [],
        offers: [PermessageDeflateOffer] = [], fields: [HTTPField] = []
    ) throws(HandshakeUsageError) {
        self.init(
            authority: Authority.rendered(host: host, port: port, isSecure: isSecure), target: target,
            subprotocols: subprotocols, offers: offers, fields: fields)
        try self.validate()
    }

    /// The value of `Sec-WebSocket-Key`.
    private static func key(_ nonce: [UInt8]) -> String { Base64.encoded(nonce) }

    /// The subprotocols that the server may select.
    private var offeredSubprotocols: [String] {
        let own = HTTPFields(self.fields).list("Sec-WebSocket-Protocol")
        return own.isEmpty ? self.subprotocols : own
    }

    /// The encoded request. No frame may be sent before the response.
    ///
    /// Prevents header injection: leaves out malformed and reserved fields and subprotocols that are not tokens, and
    /// percent-encodes characters that are not allowed in a target or host.
    /// - Parameter nonce: 16 random bytes, new for every handshake (RFC 6455 §4.1).
    public func rendered(nonce: [UInt8]) -> [UInt8] {
        let own = self.fields.filter { $0.isWellFormed && !ReservedFields.inRequest($0.name) }
        let host = own.first { $0.name.matchesIgnoringCase("Host") }
        var head = HeadWriter(method: "GET", target: PercentCoding.encoded(self.target, allowing: \.isVisibleASCII))
        head.add(host ?? HTTPField("Host", PercentCoding.encoded(self.authority, allowing: \.isVisibleASCII)))
        head.add("Upgrade", "websocket")
        head.add("Connection", "Upgrade")
        head.add("Sec-WebSocket-Version", "13")
        head.add("Sec-WebSocket-Key", Self.key(nonce))
        let subprotocols = self.subprotocols.filter(\.isToken)
        if !subprotocols.isEmpty, !own.contains(where: { $0.name.matchesIgnoringCase("Sec-WebSocket-Protocol") }) {
            head.add("Sec-WebSocket-Protocol", subprotocols.joined(separator: ", "))
        }
        if !self.offers.isEmpty {
            head.add(
                "Sec-WebSocket-Extensions", self.offers.map(\.extensionElement.rendered).joined(separator: ", "))
        }
        for field in own where !field.name.matchesIgnoringCase("Host") { head.add(field) }
        return head.finished()
    }

    /// Checks the server's response (RFC 6455 §4.1).
    ///
    /// Skip interim responses (`ResponseHead.isInterim`) before.
    /// - Parameter nonce: that of the request.
    /// - Returns: `.refused` for any status but 101, and `.invalid` for the first rule that a 101 violates.
    public func check(_ response: ResponseHead, nonce: [UInt8]) -> Result<ClientAcceptance, HandshakeFailure> {
        guard response.status == 101 else { return .failure(.refused(response)) }
        do throws(HandshakeViolation) {
            try Self.checkUpgrade(response, key: Self.key(nonce))
            return .success(
                ClientAcceptance(
                    response: response, subprotocol: try self.subprotocol(response), deflate: try self.deflate(response)
                ))
        } catch {
            return .failure(.invalid(response, error))
        }
    }

    private static func checkUpgrade(_ response: ResponseHead, key: String) throws(HandshakeViolation) {
        guard response.version >= .http11, response.version.major == 1 else { throw .wrongHTTPVersion }
        guard response.fields.list("Upgrade", contains: "websocket") else { throw .missingUpgrade }
        guard response.fields.list("Connection", contains: "upgrade") else { throw .missingConnectionUpgrade }
        let accepts = response.fields.values("Sec-WebSocket-Accept")
        guard accepts == [AcceptKey.value(for: key)] else { throw .wrongAccept }
    }

    private func subprotocol(_ response: ResponseHead) throws(HandshakeViolation) -> String? {
        let values = response.fields.values("Sec-WebSocket-Protocol")
        guard let chosen = values.first else { return nil }
        // A subprotocol cannot contain a comma, so this is a list.
        guard values.count == 1, !chosen.utf8.contains(UInt8(ascii: ",")) else { throw .severalSubprotocols }
        guard self.offeredSubprotocols.contains(chosen) else { throw .subprotocolNotOffered(chosen) }
        return chosen
    }

    private func deflate(_ response: ResponseHead) throws(HandshakeViolation) -> PermessageDeflateParameters? {
        let values = response.fields.values("Sec-WebSocket-Extensions")
        guard let accepted = try? ExtensionGrammar.parse(values) else { throw .malformedExtensions }
        guard let first = accepted.first else { return nil }
        for element in accepted where self.offers.isEmpty || element.name != ParsedDeflateParameters.extensionName {
            throw .extensionNotOffered(element.name)
        }
        guard accepted.count == 1 else { throw .repeatedExtension(first.name) }
        guard let parameters = PermessageDeflateParameters(first),
            let offer = self.offers.first(where: { parameters.isUsable(for: $0) })
        else { throw .illegalExtensionParameters(first.rendered) }
        return parameters.applyingClientLimits(of: offer)
    }

    /// Validates the handshake, for callers with untrusted input.
    ///
    /// - Throws: the first value that `rendered(nonce:)` would omit or change, or that contradicts another.
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

/// A valid response to our opening handshake, with the negotiated parameters.
public struct ClientAcceptance: Equatable, Sendable {
    public let response: ResponseHead
    /// The selected subprotocol, if any.
    public let subprotocol: String?
    /// The negotiated compression, if any.
    public let deflate: PermessageDeflateParameters?
}
