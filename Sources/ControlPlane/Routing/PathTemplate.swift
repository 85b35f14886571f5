/// The path of an operation, with places for parameters: `/v1/connections/{id}:send`.
package struct PathTemplate: Sendable, Hashable, CustomStringConvertible {
    private enum Part: Sendable, Hashable {
        case literal(String)
        /// A parameter that fills its segment up to `suffix`.
        case parameter(String, suffix: String)
    }

    package let description: String
    private let parts: [Part]

    package init(_ text: String) {
        self.description = text
        self.parts = text.split(separator: "/").map { segment in
            guard segment.hasPrefix("{"), let end = segment.firstIndex(of: "}") else {
                return .literal(String(segment))
            }
            let name = segment[segment.index(after: segment.startIndex)..<end]
            return .parameter(String(name), suffix: String(segment[segment.index(after: end)...]))
        }
    }

    /// Names of the parameters.
    package var parameters: [String] {
        self.parts.compactMap { part in
            if case .parameter(let name, _) = part { name } else { nil }
        }
    }

    /// - Parameter segments: of the request's path, still percent-encoded.
    /// - Returns: the parameters' values, decoded; `nil` if the path is another.
    package func match(_ segments: [Substring]) -> [String: String]? {
        guard segments.count == self.parts.count else { return nil }
        var values: [String: String] = [:]
        for (part, segment) in zip(self.parts, segments) {
            switch part {
            case .literal(let text):
                guard segment == text else { return nil }
            case .parameter(let name, let suffix):
                guard segment.hasSuffix(suffix) else { return nil }
                let value = segment.dropLast(suffix.count)
                // A verb belongs to the operation that names it, never to a parameter.
                guard !value.isEmpty, !value.contains(":"), let decoded = PercentText.decoded(value) else { return nil }
                values[name] = decoded
            }
        }
        return values
    }
}
