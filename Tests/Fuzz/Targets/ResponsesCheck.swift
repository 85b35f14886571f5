import WebSocketProtocol

/// One head after the other, and our judgement of each as the answer to one handshake.
enum ResponsesCheck {
    /// Small, so that inputs reach them.
    private static let limits = HeadLimits(byteCount: 1024, fieldCount: 16)
    /// Of RFC 6455 §1.3, so that its example of an answer fits.
    private static let nonce = Array("the sample nonce".utf8)
    private static let handshake = ClientHandshake(
        authority: "server.example.com", target: "/chat", subprotocols: ["chat", "superchat"],
        offers: DeflatePolicy(peerWindowBits: 10, requiresPeerWindow: true).offers)

    static func run(_ bytes: [UInt8]) throws(InvariantViolation) {
        let found = try InputSplit.expectSame(bytes, "responses") { split throws(InvariantViolation) in
            var parser = ResponseParser(limits: self.limits)
            return try HeadFeed<ResponseHead>(split.pieces(of: bytes), limits: self.limits) {
                piece, offset throws(HeadViolation) in
                try parser.parse(piece.span.bytes, consumed: &offset)
            }
        }
        for head in found.heads {
            try InvariantViolation.expect(head.fields.all.count <= self.limits.fieldCount, "too many fields")
            try InvariantViolation.expect((100...999).contains(head.status), "status \(head.status)")
            try self.judge(head)
        }
    }

    private static func judge(_ head: ResponseHead) throws(InvariantViolation) {
        switch self.handshake.check(head, nonce: self.nonce) {
        case .failure(.refused(let response)):
            try InvariantViolation.expect(response == head && head.status != 101, "refused with 101")
        case .failure(.invalid(let response, _)):
            try InvariantViolation.expect(response == head && head.status == 101, "an invalid \(head.status)")
        case .success(let acceptance):
            try InvariantViolation.expect(head.status == 101, "accepted with \(head.status)")
            let isOurs = acceptance.subprotocol.map(self.handshake.subprotocols.contains) ?? true
            try InvariantViolation.expect(isOurs, "took a subprotocol that was not offered")
            guard let agreed = acceptance.deflate else { return }
            try InvariantViolation.expect(self.handshake.offers.contains(where: agreed.satisfies), "took \(agreed)")
        }
    }
}
