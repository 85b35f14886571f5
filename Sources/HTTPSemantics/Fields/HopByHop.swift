import HTTPTypes

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
