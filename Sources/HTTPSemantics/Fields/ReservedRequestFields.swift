import HTTPTypes

/// Fields of a request that are the loader's own, so that a configuration cannot add them for all its requests.
package enum ReservedRequestFields {
    package static func contains(_ name: HTTPField.Name) -> Bool {
        switch name {
        case .connection, .hostName, .wwwAuthenticate, .contentLength, .transferEncoding: true
        default: name.canonicalName.hasPrefix("proxy-")
        }
    }
}
