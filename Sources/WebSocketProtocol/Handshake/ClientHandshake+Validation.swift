extension ClientHandshake {
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
