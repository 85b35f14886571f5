import HTTPTypes

/// Which requests a stored response is an answer to, beyond their target (RFC 9111 §4.1).
package struct VarySelection: Equatable, Sendable {
    /// A response that varies by more fields than this is an answer to no other request.
    package static let limit = 64

    /// By name in lower case, what the request said; `nil` where it said nothing. `nil` as a whole for `Vary: *`.
    package let values: [String: String?]?

    package init(response: HTTPFields, request: HTTPFields) {
        let names = FieldList.elements(response[values: .vary]).map(\.loweredASCII)
        guard !names.contains("*"), names.count <= Self.limit else {
            self.values = nil
            return
        }
        self.values = Dictionary(names.map { ($0, Self.value($0, of: request)) }) { first, _ in first }
    }

    /// Brings back what was written.
    package init(values: [String: String?]?) {
        self.values = values
    }

    package func matches(_ request: HTTPFields) -> Bool {
        guard let values = self.values else { return false }
        return values.allSatisfy { Self.value($0.key, of: request) == $0.value }
    }

    /// All lines as one list: that their blanks differ makes no difference.
    private static func value(_ name: String, of request: HTTPFields) -> String? {
        guard let name = HTTPField.Name(name) else { return nil }
        let lines = request[values: name]
        return lines.isEmpty ? nil : FieldList.elements(lines).joined(separator: ",")
    }
}
