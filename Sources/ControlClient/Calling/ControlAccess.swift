import Foundation
import URLLoading
import WireText

/// Credentials for a control plane, and how to verify it.
package struct ControlAccess: Sendable {
    /// Bearer token (RFC 6750); `nil` sends none.
    package var token: String?
    /// CA certificates (PEM) to trust instead of the system's.
    package var authorities: [UInt8]?
    /// Client certificate, sent if the control plane requests one.
    package var identity: ClientIdentity?
    /// Skips verification of the control plane's certificate.
    package var isInsecure = false

    package init() {}

    /// Whether `text` is a valid bearer token (RFC 6750 §2.1).
    package static func isToken(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.count <= 4096
            && text.utf8.allSatisfy { $0.isUnreserved || "+/=".utf8.contains($0) }
    }
}

/// Address of a control plane: `HOST[:PORT]`, `http://HOST[:PORT]`, `https://HOST[:PORT]`, `unix:///PATH` or the path of a
/// Unix socket.
package struct ControlAddress: Sendable, Equatable, CustomStringConvertible {
    /// Default address of `sluice serve`.
    package static let defaultAddress = "127.0.0.1:8081"
    /// Forms accepted by `init`, for help texts.
    package static let forms = "HOST[:PORT], http://HOST[:PORT], https://HOST[:PORT] or unix:///SOCKET"
    private static let defaultPort = 8081

    package let description: String
    /// Scheme, host and port.
    package let root: URL
    /// Path of the Unix socket to connect to; `nil` uses the host and port of `root`.
    package let socketPath: String?

    /// - Returns: `nil` for any other form.
    package init?(_ text: String) {
        if let path = Self.socketPath(text) {
            guard !path.isEmpty, path.utf8.count <= 107, !path.utf8.contains(0),
                let root = URL(string: "http://localhost")
            else { return nil }
            self.description = "unix://\(path)"
            self.root = root
            self.socketPath = path
            return
        }
        let whole = text.contains("://") ? text : "http://\(text)"
        guard var parts = URLComponents(string: whole), let scheme = parts.scheme?.lowercased(),
            scheme == "http" || scheme == "https", let host = parts.host, !host.isEmpty,
            parts.path.isEmpty || parts.path == "/", parts.query == nil, parts.fragment == nil, parts.user == nil,
            parts.password == nil, (1...65535).contains(parts.port ?? Self.defaultPort)
        else { return nil }
        parts.scheme = scheme
        parts.path = ""
        parts.port = parts.port ?? Self.defaultPort
        guard let root = parts.url else { return nil }
        self.description = root.absoluteString
        self.root = root
        self.socketPath = nil
    }

    private static func socketPath(_ text: String) -> String? {
        if text.hasPrefix("unix:///") { return String(text.dropFirst("unix://".count)) }
        return text.hasPrefix("/") || text.hasPrefix("./") || text.hasPrefix("../") ? text : nil
    }

    package var isSecure: Bool { self.root.scheme == "https" }
}
