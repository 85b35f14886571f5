import Foundation
import StreamTransport

/// Where a stream task connects to.
enum StreamPlace: Sendable {
    case host(String, port: Int)
    case unix(path: String)

    /// Why there can be no connection.
    var flaw: URLError? {
        switch self {
        case .host(let name, let port):
            if name.isEmpty { return Self.flaw("There is no host name.") }
            guard port > 0, port <= 65_535 else { return Self.flaw("There is no port \(port): 1 to 65535.") }
            return nil
        case .unix(let path):
            guard !path.isEmpty, path.utf8.count <= 107, !path.utf8.contains(0) else {
                return Self.flaw("The path of a Unix socket has 1 to 107 bytes, and no NUL.")
            }
            return nil
        }
    }

    private static func flaw(_ text: String) -> URLError {
        LoadFailure.error(.badURL, url: nil, cause: POSIXError(.EINVAL), text: text)
    }

    /// Only where there is no flaw.
    var target: ConnectTarget {
        switch self {
        case .host(let name, let port): .host(name, port: UInt16(clamping: port))
        case .unix(let path): .address(.unix(path: path))
        }
    }

    /// Names the server in challenges. Behind a Unix socket it is `localhost`.
    var url: URL? {
        var parts = URLComponents()
        parts.scheme = "https"
        switch self {
        case .host(let name, let port):
            // An IPv6 address stands in brackets in a URL.
            parts.encodedHost = name.contains(":") && !name.hasPrefix("[") ? "[\(name)]" : name
            parts.port = port
        case .unix: parts.host = "localhost"
        }
        return parts.url
    }
}
