/// Pages that may connect: a scheme, a host and a port (RFC 6454).
package struct OriginPattern: Sendable, Hashable {
    /// `http` or `https`, or another in lower case.
    package let scheme: String
    package let host: HostPattern
    /// `nil` is the scheme's own.
    package let port: UInt16?

    package init(scheme: String, host: HostPattern, port: UInt16?) {
        self.scheme = scheme
        self.host = host
        let schemePort: UInt16? = scheme == "http" ? 80 : scheme == "https" ? 443 : nil
        self.port = port == schemePort ? nil : port
    }
}

extension OriginPattern: CustomStringConvertible {
    package var description: String {
        "\(self.scheme)://\(self.host)" + (self.port.map { ":\($0)" } ?? "")
    }
}
