/// The refusals that this and other modules have in common.
extension HandshakeRefusal {
    /// 400: the request breaks a rule.
    public static func malformed(_ explanation: String) -> HandshakeRefusal {
        HandshakeRefusal(status: 400, explanation: explanation)
    }

    /// 400: the target is no path, or one that cannot be decoded.
    public static let malformedTarget = HandshakeRefusal.malformed(
        "The request target is not a path that can be read; begin it with / and check its percent signs.")

    /// 403: we do not serve this origin (RFC 6455 §4.2.2).
    public static let originRefused = HandshakeRefusal(
        status: 403,
        explanation: "Pages of this origin may not connect here; the server's list of allowed origins decides.")

    /// 404: nothing is behind this path.
    public static let noRoute = HandshakeRefusal(
        status: 404, explanation: "Nothing answers at this host and path; check the URL.")

    /// 405: an opening handshake is a GET.
    public static let wrongMethod = HandshakeRefusal(
        status: 405, explanation: "This is a WebSocket endpoint; use GET with an upgrade.",
        fields: [HTTPField("Allow", "GET")])

    /// 426: the request does not ask for a WebSocket, or in a way that has no effect.
    public static func upgradeRequired(_ explanation: String) -> HandshakeRefusal {
        HandshakeRefusal(
            status: 426, explanation: explanation,
            fields: [HTTPField("Upgrade", "websocket"), HTTPField("Sec-WebSocket-Version", "13")])
    }

    /// 429: this client asks too often.
    /// - Parameter retryAfter: seconds until it makes sense to ask again.
    public static func tooManyRequests(retryAfter: Int) -> HandshakeRefusal {
        HandshakeRefusal(
            status: 429, explanation: "Too many connections from this address; try again in \(retryAfter) s.",
            fields: [HTTPField("Retry-After", String(retryAfter))])
    }

    /// 503: we are at our limit.
    /// - Parameter retryAfter: seconds until it makes sense to ask again.
    public static func unavailable(retryAfter: Int) -> HandshakeRefusal {
        HandshakeRefusal(
            status: 503, explanation: "The server takes no more connections now; try again in \(retryAfter) s.",
            fields: [HTTPField("Retry-After", String(retryAfter))])
    }

    /// 503: we are about to stop.
    public static let goingAway = HandshakeRefusal(
        status: 503, explanation: "This server is shutting down; try another or try again later.")

    /// 505: not HTTP/1.1.
    public static let wrongHTTPVersion = HandshakeRefusal(
        status: 505, explanation: "The opening handshake of a WebSocket needs HTTP/1.1 here.")
}
