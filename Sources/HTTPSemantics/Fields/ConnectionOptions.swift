import HTTPTypes

/// The options of `Connection`, and what they mean for the time after the message (RFC 9110 §7.6.1, RFC 9112 §9.3).
package struct ConnectionOptions: Equatable, Sendable {
    /// In lower case, in their order.
    package let names: [String]

    package init(_ fields: HTTPFields) {
        self.names = FieldList.elements(fields[values: .connection]).filter(\.isToken).map(\.loweredASCII)
    }

    package func contains(_ option: String) -> Bool { self.names.contains(option.loweredASCII) }

    /// Whether the connection may serve another request.
    /// - Parameter isHTTP10: of that version the connection ends unless it was said that it stays.
    package func persists(isHTTP10: Bool) -> Bool {
        if self.contains("close") { return false }
        return !isHTTP10 || self.contains("keep-alive")
    }
}
