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

/// Fields that are for one connection only (RFC 9110 §7.6.1).
package enum HopByHop {
    private static let names: Set<HTTPField.Name> = [
        .connection, .proxyConnection, .keepAlive, .te, .transferEncoding, .upgrade, .proxyAuthenticate,
        .proxyAuthorization, .proxyAuthenticationInfo,
    ]

    /// `fields` as they may be kept or sent on: without those, and without what `Connection` names.
    package static func removed(from fields: HTTPFields) -> HTTPFields {
        let named = Set(ConnectionOptions(fields).names.compactMap { HTTPField.Name($0) })
        return HTTPFields(fields.filter { !self.names.contains($0.name) && !named.contains($0.name) })
    }
}

/// How long a server says that it keeps an idle connection: the `Keep-Alive` field.
package struct KeepAlive: Equatable, Sendable {
    /// In seconds; at most a day is believed.
    package let timeout: Int64?
    /// Requests that the connection still serves.
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

/// Fields of a request that are the loader's own, so that a configuration cannot add them for all its requests.
package enum ReservedRequestFields {
    package static func contains(_ name: HTTPField.Name) -> Bool {
        switch name {
        case .connection, .hostName, .wwwAuthenticate, .contentLength, .transferEncoding: true
        default: name.canonicalName.hasPrefix("proxy-")
        }
    }
}

/// What a method promises (RFC 9110 §9.2). Of a method unknown here the worst is thought.
package enum MethodTraits {
    /// It asks and changes nothing.
    package static func isSafe(_ method: HTTPRequest.Method) -> Bool {
        [.get, .head, .options, .trace].contains(method)
    }

    /// Twice does what once does: the request may be sent again when its connection broke and no answer came.
    package static func isIdempotent(_ method: HTTPRequest.Method) -> Bool {
        self.isSafe(method) || [.put, .delete].contains(method)
    }
}

/// `Retry-After` (RFC 9110 §10.2.3).
package enum RetryAfter {
    /// Longer waits are taken for this many seconds: a day.
    package static let limit: Int64 = 86_400

    /// How many seconds to wait from `now` on, never negative; `nil` for what says neither a date nor seconds.
    package static func seconds(_ text: String, now: HTTPDate) -> Int64? {
        let text = text.trimmingBlanks
        if let seconds = text.clampedDecimal(limit: self.limit) { return seconds }
        return HTTPDate(text, now: now).map { min(max(0, $0.seconds(since: now)), self.limit) }
    }
}
