/// Pages that may connect, by their origin (RFC 6454).
package enum OriginPattern: Sendable, Hashable {
    /// All of them; written `*`.
    case any
    /// Those whose origin is opaque and sent as `null`: sandboxed frames, `data:` and `file:` pages.
    case opaque
    /// Those of one site. Make it with `init(scheme:host:port:)`, which leaves out the scheme's own port.
    case site(scheme: String, host: HostPattern, port: UInt16?)

    /// - Parameters:
    ///   - scheme: `http` or `https`, or another in lower case.
    ///   - port: `nil` is the scheme's own.
    package init(scheme: String, host: HostPattern, port: UInt16?) {
        let schemePort: UInt16? = scheme == "http" ? 80 : scheme == "https" ? 443 : nil
        self = .site(scheme: scheme, host: host, port: port == schemePort ? nil : port)
    }
}

extension OriginPattern: CustomStringConvertible {
    package var description: String {
        switch self {
        case .any: "*"
        case .opaque: "null"
        case .site(let scheme, let host, let port): "\(scheme)://\(host)" + (port.map { ":\($0)" } ?? "")
        }
    }
}
