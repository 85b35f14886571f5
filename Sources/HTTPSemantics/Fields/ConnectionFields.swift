import HTTPTypes
import WireText

/// Hop-by-hop fields (RFC 9110 §7.6.1).
package enum HopByHop {
    private static let names: Set<HTTPField.Name> = [
        .connection, .proxyConnection, .keepAlive, .te, .transferEncoding, .upgrade, .proxyAuthenticate,
        .proxyAuthorization, .proxyAuthenticationInfo,
    ]

    /// `fields` for storing or forwarding: without hop-by-hop fields and those that `Connection` nominates.
    package static func removed(from fields: HTTPFields) -> HTTPFields {
        let named = Set(FieldList.elements(fields[values: .connection]).compactMap { HTTPField.Name($0) })
        return HTTPFields(fields.filter { !self.names.contains($0.name) && !named.contains($0.name) })
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

/// Properties of request methods (RFC 9110 §9.2). Unknown methods are not safe.
package enum MethodTraits {
    package static func isSafe(_ method: HTTPRequest.Method) -> Bool {
        [.get, .head, .options, .trace].contains(method)
    }
}
