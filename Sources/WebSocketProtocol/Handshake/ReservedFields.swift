/// Fields that the opening handshake writes itself, or that would give its messages a body.
enum ReservedFields {
    private static let names = [
        "Upgrade", "Connection", "Sec-WebSocket-Key", "Sec-WebSocket-Version", "Sec-WebSocket-Accept",
        "Sec-WebSocket-Extensions", "Content-Length", "Transfer-Encoding",
    ]

    /// A request's Host and Sec-WebSocket-Protocol may be the caller's.
    static func inRequest(_ name: String) -> Bool {
        self.names.contains(where: name.matchesIgnoringCase)
    }

    static func inResponse(_ name: String) -> Bool {
        self.inRequest(name) || name.matchesIgnoringCase("Sec-WebSocket-Protocol")
    }
}
