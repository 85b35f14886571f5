import HTTPTypes

/// Where a response sends its request (RFC 9110 §15.4, §10.2.2).
package enum RedirectReference: Equatable, Sendable {
    /// The response is itself the result: its status redirects nothing, or it does not say where to.
    case none
    /// A reference to be resolved against the request's URL.
    case reference(String)
    /// There are several places, or what is there is no reference: whoever added the second is not to be followed.
    case malformed

    /// Longer references are not followed.
    package static let limit = 65_536

    /// 300 and 304 are results, whatever they name.
    package init(status: Int, fields: HTTPFields) {
        guard RedirectRule.isRedirect(status) else {
            self = .none
            return
        }
        let lines = Set(fields[values: .location].map(\.trimmingBlanks))
        guard let line = lines.first, !line.isEmpty else {
            self = .none
            return
        }
        guard lines.count == 1, line.utf8.count <= Self.limit else {
            self = .malformed
            return
        }
        // Servers write names as people do: what no reference may hold is encoded, what is encoded stays.
        self = .reference(PercentCoding.encoded(line, allowing: Self.isAllowed))
    }

    /// `reference` with the fragment of the request's URL, where it has none of its own (RFC 9110 §10.2.2).
    package static func inheritingFragment(_ reference: String, from fragment: String?) -> String {
        guard let fragment, !reference.utf8.contains(UInt8(ascii: "#")) else { return reference }
        return reference + "#" + fragment
    }

    private static func isAllowed(_ byte: UInt8) -> Bool {
        byte > 0x20 && byte < 0x7F && !"\"<>\\^`{|}".utf8.contains(byte)
    }
}
