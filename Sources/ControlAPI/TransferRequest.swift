/// POST /v1/transfers: starts a transfer. With `destination` it is a download, with a body an upload; otherwise its
/// content is kept in memory.
package struct TransferRequest: Codable, Sendable, Equatable, StrictDecodable {
    /// `http://` or `https://`, without a user.
    package var url: String
    /// Default: GET; PUT with a body.
    package var method: String?
    /// Fields of framing and of the connection are set by the gateway.
    package var headers: [String: String]?
    /// The body, as UTF-8. At most one of `text`, `body`, `data`, `file`, `streamed`.
    package var text: String?
    /// Alias of `text`.
    package var body: String?
    /// The body in base64.
    package var data: String?
    /// Absolute path of the file to send, below a directory of `control.transfers`.
    package var file: String?
    /// Whether the body follows by PUT …/body, which starts the transfer.
    package var streamed: Bool?
    /// Absolute path of the file to write, below a directory of `control.transfers`.
    package var destination: String?
    /// Whether an existing file is replaced. Default: false.
    package var overwrite: Bool?
    /// Name of an entry of `control.transfers.credentials`.
    package var credential: String?
    /// Default: true; otherwise the redirect is the result.
    package var followRedirects: Bool?
    /// Accepts any certificate. Only for tests.
    package var insecure: Bool?
    /// Certificates in PEM that are trusted instead of the system's roots.
    package var authorities: String?
    /// Longest time without a byte in either direction. Default: 60 s.
    package var idleTimeoutMs: Double?
    /// For the whole transfer, time in suspension included. Default: 7 days.
    package var timeoutMs: Double?
    /// Limit of content kept in memory. Default and maximum: the configured limit.
    package var maximumBodyBytes: Int?
    /// Default: true; otherwise the transfer waits for :resume.
    package var start: Bool?
    /// At most 1024 bytes.
    package var description: String?
    /// 0 to 1. Default: 0.5.
    package var priority: Double?
    /// At most 64, each name and value of at most 256 bytes.
    package var labels: [String: String]?

    package init(
        url: String, method: String? = nil, destination: String? = nil, overwrite: Bool? = nil,
        labels: [String: String]? = nil
    ) {
        self.url = url
        self.method = method
        self.destination = destination
        self.overwrite = overwrite
        self.labels = labels
    }

    package static let members = [
        "url", "method", "headers", "text", "body", "data", "file", "streamed", "destination", "overwrite",
        "credential", "followRedirects", "insecure", "authorities", "idleTimeoutMs", "timeoutMs", "maximumBodyBytes",
        "start", "description", "priority", "labels",
    ]
}
