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

    /// What a proxy might be asked for; `nil` where there is nothing of the kind.
    var proxiedURL: URL? {
        if case .host = self, self.flaw == nil { self.url } else { nil }
    }

    /// Names the server in challenges. Behind a Unix socket it is `localhost`. `nil` where the name cannot stand in a URL.
    var url: URL? {
        switch self {
        // As text: what URLComponents cannot take ends the process.
        case .host(let name, let port):
            let host = name.contains(":") && !name.hasPrefix("[") ? "[\(name)]" : name
            let encoded =
                host.hasPrefix("[") ? host : host.addingPercentEncoding(withAllowedCharacters: .urlHostAllowed)
            return encoded.flatMap { URL(string: "https://\($0):\(port)") }
        case .unix: return URL(string: "https://localhost")
        }
    }
}
