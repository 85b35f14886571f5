import StreamTransport
import TLSEngine
import WireText

/// Tokens for routes of simulated gateways: signed with HS256 and the secret that the configurations have.
enum TokenScene {
    static let secret = "0123456789abcdef0123456789abcdef"

    /// Seconds since 1970 by the clock that a gateway compares with.
    static var now: Int64 { Machine.wallClockMilliseconds() / 1000 }

    static func token(_ claims: String, secret: String = Self.secret, header: String = #"{"alg":"HS256"}"#) -> String {
        let signed = Self.base64URL(Array(header.utf8)) + "." + Self.base64URL(Array(claims.utf8))
        let code = KeyedDigest.of(Array(signed.utf8), secret: Array(secret.utf8), by: .sha256)
        return signed + "." + Self.base64URL(code ?? [])
    }

    private static func base64URL(_ bytes: [UInt8]) -> String {
        Base64.encoded(bytes).replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
    }

    /// An opening request with these fields in addition to the necessary ones.
    static func request(_ target: String, _ fields: String...) -> [UInt8] {
        let lines =
            [
                "GET \(target) HTTP/1.1", "Host: server.example.com", "Upgrade: websocket", "Connection: Upgrade",
                "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version: 13",
            ] + fields
        return Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8)
    }
}
