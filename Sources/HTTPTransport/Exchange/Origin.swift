/// The server that a request goes to (RFC 9110 §4.3.1).
package struct Origin: Sendable, Hashable {
    package enum Scheme: String, Sendable, Hashable {
        case http
        case https
    }

    package var scheme: Scheme
    /// A name (A-labels, in small letters) or an address; IPv6 without brackets.
    package var host: String
    package var port: UInt16
    /// Of the Unix socket where the server is reached; host and port then only name it. `nil`: there is none.
    package var socketPath: String?

    /// - Parameter port: `nil` means the scheme's own.
    package init(_ scheme: Scheme, host: String, port: UInt16? = nil) {
        self.scheme = scheme
        self.host = host
        self.port = port ?? scheme.defaultPort
    }

    /// The value of the Host field: without the port where it is the scheme's own.
    package var authority: String {
        let host = self.host.utf8.contains(0x3A) ? "[\(self.host)]" : self.host
        return self.port == self.scheme.defaultPort ? host : "\(host):\(self.port)"
    }
}

extension Origin.Scheme {
    package var defaultPort: UInt16 {
        switch self {
        case .http: 80
        case .https: 443
        }
    }
}
