/// A host name that a request may ask for.
package enum HostPattern: Sendable, Hashable {
    /// In lower case, without port.
    case exact(String)
    /// One label, any, before this suffix: `*.example.com` holds `example.com`.
    case wildcard(suffix: String)

    /// - Parameter host: in any case, without port.
    package func matches(_ host: String) -> Bool {
        let host = host.lowercased()
        switch self {
        case .exact(let name): return host == name
        case .wildcard(let suffix):
            guard let dot = host.firstIndex(of: "."), dot != host.startIndex else { return false }
            return host[host.index(after: dot)...] == suffix
        }
    }
}

extension HostPattern: CustomStringConvertible {
    package var description: String {
        switch self {
        case .exact(let name): name
        case .wildcard(let suffix): "*.\(suffix)"
        }
    }
}
