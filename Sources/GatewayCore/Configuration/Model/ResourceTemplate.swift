/// Path and query towards a WebSocket endpoint, with places for the parameters of the route's path.
package struct ResourceTemplate: Sendable, Hashable {
    package enum Part: Sendable, Hashable {
        case text(String)
        case parameter(String)
    }

    package let parts: [Part]

    package init(_ parts: [Part] = []) {
        self.parts = parts
    }

    package var isEmpty: Bool { self.parts.isEmpty }

    /// Names of the parameters it has places for.
    package var parameters: [String] {
        self.parts.compactMap { part in
            if case .parameter(let name) = part { name } else { nil }
        }
    }

    /// The resource of one request.
    ///
    /// - Parameters:
    ///   - parameters: values still percent-encoded, as the client sent them; a missing one is empty.
    ///   - query: the client's query without `?`, appended with `?` or `&`; `nil` or empty appends nothing.
    package func resource(parameters: [String: String], query: String?) -> String {
        var text = ""
        for part in self.parts {
            switch part {
            case .text(let piece): text += piece
            case .parameter(let name):
                let value = parameters[name] ?? ""
                text += text.utf8.contains(UInt8(ascii: "?")) ? Self.queryValue(value) : value
            }
        }
        guard let query, !query.isEmpty else { return text }
        return text + (text.utf8.contains(UInt8(ascii: "?")) ? "&" : "?") + query
    }

    /// A path may hold characters that end a value in a query, or mean something else there.
    private static func queryValue(_ value: String) -> String {
        guard value.utf8.contains(where: { self.escapes[$0] != nil }) else { return value }
        return value.utf8.reduce(into: "") { text, byte in
            text += self.escapes[byte] ?? String(UnicodeScalar(byte))
        }
    }

    private static let escapes = [
        UInt8(ascii: "&"): "%26", UInt8(ascii: ";"): "%3B", UInt8(ascii: "+"): "%2B", UInt8(ascii: "="): "%3D",
    ]
}

extension ResourceTemplate: CustomStringConvertible {
    package var description: String {
        self.parts.reduce(into: "") { text, part in
            switch part {
            case .text(let piece): text += piece
            case .parameter(let name): text += "{\(name)}"
            }
        }
    }
}
