// Heads and their fields are part of this module's API.
@_exported import WireText

public typealias HTTPField = FieldLine
public typealias HTTPFields = FieldLines

/// Fields that the opening handshake sets itself, or that would declare a body.
enum ReservedFields {
    private static let names = [
        "Upgrade", "Connection", "Sec-WebSocket-Key", "Sec-WebSocket-Version", "Sec-WebSocket-Accept",
        "Sec-WebSocket-Extensions", "Content-Length", "Transfer-Encoding",
    ]

    /// The caller may set Host and Sec-WebSocket-Protocol of a request.
    static func inRequest(_ name: String) -> Bool {
        self.names.contains(where: name.matchesIgnoringCase)
    }

    static func inResponse(_ name: String) -> Bool {
        self.inRequest(name) || name.matchesIgnoringCase("Sec-WebSocket-Protocol")
    }
}
