import TLSEngine
import WebSocketProtocol

/// What is known of a connection that is open.
struct ConnectionFacts: Sendable {
    var url: String
    var localAddress: String?
    var peerAddress: String?
    var tls: TLSFacts?
    /// `nil` on a stream.
    var response: ResponseHead?
    var subprotocol: String?

    /// The extensions that the server accepted.
    var extensions: String? { self.response?.fields["Sec-WebSocket-Extensions"] }

    /// A line for each fact.
    var lines: [String] {
        var lines = ["connected to \(self.peerAddress ?? "?") from \(self.localAddress ?? "?")"]
        if let tls {
            let name = tls.serverName.map { " for \($0)" } ?? ""
            let agreed = tls.applicationProtocol.map { ", ALPN \($0)" } ?? ""
            lines.append("\(tls.version)\(name), \(tls.cipherName)\(agreed)")
        }
        if let response {
            lines.append("HTTP/1.1 \(response.status) \(response.reason)")
            lines += response.fields.all.map { "\($0.name): \($0.value)" }
            lines.append("subprotocol \(self.subprotocol ?? "none"), extensions \(self.extensions ?? "none")")
        }
        return lines
    }
}
