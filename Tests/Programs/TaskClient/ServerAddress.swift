import ArgumentParser
import FoundationEssentials

/// Host, port and resource of a `ws` or `wss` URL (RFC 6455 §3).
struct ServerAddress {
    let host: String
    let port: UInt16
    let path: String
    let isSecure: Bool

    init(_ url: String) throws {
        guard let parts = URLComponents(string: url), let scheme = parts.scheme, ["ws", "wss"].contains(scheme),
            let host = parts.host, !host.isEmpty, parts.fragment == nil
        else { throw ValidationError("'\(url)' is not like ws://host:port/path") }
        self.isSecure = scheme == "wss"
        guard let port = UInt16(exactly: parts.port ?? (self.isSecure ? 443 : 80)) else {
            throw ValidationError("'\(url)' names a port above 65535")
        }
        self.host = host
        self.port = port
        let path = parts.percentEncodedPath
        self.path = (path.isEmpty ? "/" : path) + (parts.percentEncodedQuery.map { "?\($0)" } ?? "")
    }
}
