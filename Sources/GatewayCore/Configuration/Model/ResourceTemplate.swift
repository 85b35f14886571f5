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
            case .parameter(let name): text += parameters[name] ?? ""
            }
        }
        guard let query, !query.isEmpty else { return text }
        return text + (text.utf8.contains(UInt8(ascii: "?")) ? "&" : "?") + query
    }
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
