import WebSocketProtocol

/// Each line of the input is the value of one header field.
enum ExtensionsCheck {
    private static let policies = [
        DeflatePolicy(),
        DeflatePolicy(
            ownContextTakeover: false, peerContextTakeover: false, ownWindowBits: 9, peerWindowBits: 10,
            requiresPeerWindow: true),
    ]

    static func run(_ bytes: [UInt8]) throws(InvariantViolation) {
        let text = String(decoding: bytes, as: UTF8.self)
        let values = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        let read: [WebSocketExtension]
        do throws(ExtensionSyntaxViolation) {
            read = try ExtensionGrammar.parse(values)
        } catch {
            let isWithin = values.contains(error.value) && (0...error.value.utf8.count).contains(error.offset)
            return try InvariantViolation.expect(isWithin, "the fault is at \(error.offset) of \(error.value)")
        }
        // One list over several fields is the same list in one (RFC 9110 §5.3).
        try self.expect([values.joined(separator: ",")], toRead: read)
        try self.expect(read.map(\.rendered), toRead: read)
        for policy in self.policies { try self.expectAnAnswer(to: read, by: policy) }
    }

    private static func expect(_ values: [String], toRead expected: [WebSocketExtension]) throws(InvariantViolation) {
        let again: [WebSocketExtension]
        do throws(ExtensionSyntaxViolation) {
            again = try ExtensionGrammar.parse(values)
        } catch {
            throw InvariantViolation("\(values) is refused at \(error.offset), though it means \(expected)")
        }
        try InvariantViolation.expect(again == expected, "\(values) reads \(again), not \(expected)")
    }

    /// Our answer matches one of the offers, and the client reads it with the same meaning.
    private static func expectAnAnswer(to read: [WebSocketExtension], by policy: DeflatePolicy)
        throws(InvariantViolation)
    {
        guard let accepted = policy.choose(among: read) else { return }
        let offers = read.compactMap(PermessageDeflateOffer.init)
        try InvariantViolation.expect(
            offers.contains(where: accepted.satisfies), "\(accepted) answers none of \(offers)")
        try InvariantViolation.expect(
            PermessageDeflateParameters(accepted.extensionElement) == accepted, "\(accepted) reads otherwise")
    }
}
