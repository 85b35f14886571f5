/// Fields that the opening handshake writes itself, or that would give its messages a body.
enum ReservedFields {
    private static let names = [
        "Upgrade", "Connection", "Sec-WebSocket-Key", "Sec-WebSocket-Version", "Sec-WebSocket-Accept",
        "Sec-WebSocket-Extensions", "Content-Length", "Transfer-Encoding",
    ]

    /// - Throws: for the first of `fields` that is not well-formed, reserved, or among `others`.
    static func check(_ fields: [HTTPField], others: [String] = []) throws(HandshakeUsageError) {
        for field in fields {
            guard field.isWellFormed else { throw .malformedField(field) }
            if (self.names + others).contains(where: field.name.matchesIgnoringCase) {
                throw .reservedField(field.name)
            }
        }
    }
}
