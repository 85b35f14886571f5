/// What one request with its response took. A duration is missing where its step was not taken, or did not end.
package struct TransferTransaction: Codable, Sendable, Equatable {
    package var method: String
    package var url: String
    package var status: Int?
    /// By its ALPN name.
    package var `protocol`: String?
    /// Whether the connection served a request before.
    package var reusedConnection: Bool
    package var localAddress: String?
    package var remoteAddress: String?
    /// As `TLS 1.3`.
    package var tlsVersion: String?
    /// Looking up the name.
    package var lookupMs: Double?
    /// Connecting, TLS included.
    package var connectMs: Double?
    package var secureMs: Double?
    /// Sending.
    package var requestMs: Double?
    /// From the first byte sent to the head of the response.
    package var responseAfterMs: Double?
    /// From the head to the last byte.
    package var responseMs: Double?
    /// Head and body, with framing.
    package var sentBytes: Int64
    package var receivedBytes: Int64

    package init(
        method: String, url: String, status: Int? = nil, protocol: String? = nil, reusedConnection: Bool,
        localAddress: String? = nil, remoteAddress: String? = nil, tlsVersion: String? = nil,
        lookupMs: Double? = nil, connectMs: Double? = nil, secureMs: Double? = nil, requestMs: Double? = nil,
        responseAfterMs: Double? = nil, responseMs: Double? = nil, sentBytes: Int64, receivedBytes: Int64
    ) {
        self.method = method
        self.url = url
        self.status = status
        self.protocol = `protocol`
        self.reusedConnection = reusedConnection
        self.localAddress = localAddress
        self.remoteAddress = remoteAddress
        self.tlsVersion = tlsVersion
        self.lookupMs = lookupMs
        self.connectMs = connectMs
        self.secureMs = secureMs
        self.requestMs = requestMs
        self.responseAfterMs = responseAfterMs
        self.responseMs = responseMs
        self.sentBytes = sentBytes
        self.receivedBytes = receivedBytes
    }
}
