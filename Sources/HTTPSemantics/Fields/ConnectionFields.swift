import HTTPTypes
import WireText

/// The options of `Connection`, and whether the connection persists (RFC 9110 §7.6.1, RFC 9112 §9.3).
package struct ConnectionOptions: Equatable, Sendable {
    /// In lower case, in the order received.
    package let names: [String]

    package init(_ fields: HTTPFields) {
        self.names = FieldList.elements(fields[values: .connection]).filter(\.isToken).map(\.loweredASCII)
    }

    package func contains(_ option: String) -> Bool { self.names.contains(option.loweredASCII) }

    /// Whether the connection may be reused for another request.
    /// - Parameter isHTTP10: whether the message is HTTP/1.0, where `keep-alive` is required.
    package func persists(isHTTP10: Bool) -> Bool {
        if self.contains("close") { return false }
        return !isHTTP10 || self.contains("keep-alive")
    }
}

/// Hop-by-hop fields (RFC 9110 §7.6.1).
package enum HopByHop {
    private static let names: Set<HTTPField.Name> = [
        .connection, .proxyConnection, .keepAlive, .te, .transferEncoding, .upgrade, .proxyAuthenticate,
        .proxyAuthorization, .proxyAuthenticationInfo,
    ]

    /// `fields` for storing or forwarding: without hop-by-hop fields and those that `Connection` nominates.
    package static func removed(from fields: HTTPFields) -> HTTPFields {
        let named = Set(ConnectionOptions(fields).names.compactMap { HTTPField.Name($0) })
        return HTTPFields(fields.filter { !self.names.contains($0.name) && !named.contains($0.name) })
    }
}

/// The `Keep-Alive` field of a response.
package struct KeepAlive: Equatable, Sendable {
    /// Idle timeout of the connection in seconds, at most a day.
    package let timeout: Int64?
    /// Number of further requests on the connection.
    package let remaining: Int64?

    package init(_ fields: HTTPFields) {
        var timeout: Int64?
        var remaining: Int64?
        for element in FieldList.elements(fields[values: .keepAlive]) {
            let parts = element.split(separator: "=", maxSplits: 1).map(\.trimmingBlanks)
            guard parts.count == 2 else { continue }
            if parts[0].matchesIgnoringCase("timeout") { timeout = parts[1].clampedDecimal(limit: 86_400) }
            if parts[0].matchesIgnoringCase("max") { remaining = parts[1].clampedDecimal(limit: 1_000_000) }
        }
        self.timeout = timeout
        self.remaining = remaining
    }
}

/// Request fields that only the loader sets; a session configuration cannot add them to its requests.
package enum ReservedRequestFields {
    package static func contains(_ name: HTTPField.Name) -> Bool {
        switch name {
        case .connection, .hostName, .wwwAuthenticate, .contentLength, .transferEncoding: true
        default: name.canonicalName.hasPrefix("proxy-")
        }
    }
}

/// Properties of request methods (RFC 9110 §9.2). Unknown methods are neither safe nor idempotent.
package enum MethodTraits {
    package static func isSafe(_ method: HTTPRequest.Method) -> Bool {
        [.get, .head, .options, .trace].contains(method)
    }

    /// An idempotent request may be retried when its connection fails before the response.
    package static func isIdempotent(_ method: HTTPRequest.Method) -> Bool {
        self.isSafe(method) || [.put, .delete].contains(method)
    }
}

/// `Retry-After` (RFC 9110 §10.2.3).
package enum RetryAfter {
    /// Longest delay in seconds, a day; greater values are clamped.
    package static let limit: Int64 = 86_400

    /// The delay in seconds from `now` on, never negative; `nil` for an invalid value.
    package static func seconds(_ text: String, now: HTTPDate) -> Int64? {
        let text = text.trimmingBlanks
        if let seconds = text.clampedDecimal(limit: self.limit) { return seconds }
        return HTTPDate(text, now: now).map { min(max(0, $0.seconds(since: now)), self.limit) }
    }
}
