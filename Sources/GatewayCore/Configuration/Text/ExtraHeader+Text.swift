extension ExtraHeader {
    /// Fields that the opening handshake itself writes, or that say who the client is.
    private static let reserved: Set<String> = [
        "host", "upgrade", "connection", "content-length", "transfer-encoding", "te", "trailer", "keep-alive",
        "sec-websocket-key", "sec-websocket-version", "sec-websocket-protocol", "sec-websocket-extensions",
        "sec-websocket-accept", "forwarded", "x-forwarded-for", "x-forwarded-proto", "x-forwarded-host",
    ]

    /// A name that is a token and not one of those the gateway writes, and a value of visible characters, spaces and
    /// tabs (RFC 9110 §5.5), of at most 4096 bytes.
    package init(checking name: String, value: String) throws(TextFault) {
        guard NameText.isToken(name) else {
            throw TextFault(expected: "a header name of letters, digits and !#$%&'*+-.^_`|~")
        }
        guard !Self.reserved.contains(name.lowercased()) else {
            throw TextFault(expected: "a header that the gateway does not write itself", remedy: "leave out \(name)")
        }
        guard value.utf8.count <= 4096, value.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }) else {
            throw TextFault(expected: "a header value of at most 4096 bytes without control characters")
        }
        self.init(name: name, value: value)
    }
}
