import WebSocketProtocol

/// One head after the other, and our answer to each.
enum RequestsCheck {
    /// Small, so that inputs reach them.
    private static let limits = HeadLimits(byteCount: 1024, fieldCount: 16)

    static func run(_ bytes: [UInt8]) throws(InvariantViolation) {
        let found = try InputSplit.expectSame(bytes, "requests") { split throws(InvariantViolation) in
            var parser = RequestParser(limits: self.limits)
            return try HeadFeed<RequestHead>(split.pieces(of: bytes), limits: self.limits) {
                piece, offset throws(HeadViolation) in
                try parser.parse(piece.span.bytes, consumed: &offset)
            }
        }
        for head in found.heads {
            try InvariantViolation.expect(head.fields.all.count <= self.limits.fieldCount, "too many fields")
            try self.answer(head)
        }
        if let violation = found.violation { try self.expectAResponse(HandshakeRefusal(violation)) }
    }

    private static func answer(_ head: RequestHead) throws(InvariantViolation) {
        switch ServerHandshake.evaluate(head) {
        case .failure(let refusal): try self.expectAResponse(refusal)
        case .success(let request):
            let acceptance = request.acceptance(subprotocol: request.subprotocols.last, deflate: DeflatePolicy())
            let response = HeadFeed<ResponseHead>.response(acceptance.response)
            try InvariantViolation.expect(response?.status == 101, "accepted with no response of ours: \(acceptance)")
            let isOffered = acceptance.subprotocol.map(request.subprotocols.contains) ?? true
            try InvariantViolation.expect(isOffered, "a subprotocol that was not offered")
            try InvariantViolation.expect(
                response?.fields["Sec-WebSocket-Protocol"] == acceptance.subprotocol, "says another subprotocol")
        }
    }

    private static func expectAResponse(_ refusal: HandshakeRefusal) throws(InvariantViolation) {
        let response = HeadFeed<ResponseHead>.response(refusal.rendered())
        try InvariantViolation.expect(
            response?.status == refusal.status, "refused with no response of ours: \(refusal)")
        try InvariantViolation.expect((400...599).contains(refusal.status), "refused with \(refusal.status)")
    }
}
