import HTTPTypes

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
