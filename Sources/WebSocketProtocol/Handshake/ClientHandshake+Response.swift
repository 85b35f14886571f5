extension ClientHandshake {
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
        guard accepts == [AcceptKey.answering(key)] else { throw .wrongAccept }
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
        for named in accepted where self.offers.isEmpty || named.name != DeflateParameterReading.extensionName {
            throw .extensionNotOffered(named.name)
        }
        guard accepted.count == 1 else { throw .repeatedExtension(first.name) }
        guard let parameters = PermessageDeflateParameters(first),
            let offer = self.offers.first(where: { parameters.answers($0) })
        else { throw .illegalExtensionParameters(first.rendered) }
        return parameters.bindingClient(to: offer)
    }
}
