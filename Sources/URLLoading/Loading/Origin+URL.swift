import Foundation
import HTTPSemantics
import HTTPTransport

extension HTTPSemantics.Origin {
    /// - Returns: `nil` for a URL without a host.
    init?(_ url: URL) {
        guard let scheme = url.scheme, let host = url.serverName else { return nil }
        self.init(scheme: scheme, host: host, port: url.port)
    }
}

extension HTTPTransport.Origin {
    /// Where a request for `url` goes to; `ws` stands for `http`, and `wss` for `https`.
    /// - Returns: `nil` for a URL that is not of HTTP, and for one without a host or with a port that does not exist.
    init?(_ url: URL) {
        guard let host = url.serverName else { return nil }
        let scheme: HTTPTransport.Origin.Scheme
        switch url.scheme?.withLoweredLetters {
        case "http", "ws": scheme = .http
        case "https", "wss": scheme = .https
        default: return nil
        }
        guard let number = url.port else {
            self.init(scheme, host: host)
            return
        }
        guard let port = UInt16(exactly: number), port > 0 else { return nil }
        self.init(scheme, host: host, port: port)
    }
}

extension URL {
    /// The host in small letters and without brackets; `nil` where there is none.
    var serverName: String? {
        guard var host = self.host(percentEncoded: true)?.withLoweredLetters, !host.isEmpty else { return nil }
        if host.hasPrefix("["), host.hasSuffix("]") { host = String(host.dropFirst().dropLast()) }
        return host
    }

    /// What stands in the request line: path and query.
    var requestTarget: String {
        let path = self.path(percentEncoded: true)
        let query = self.query(percentEncoded: true).map { "?\($0)" } ?? ""
        return (path.isEmpty ? "/" : path) + query
    }
}
