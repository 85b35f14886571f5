/// POST /v1/transfers: what to transfer. With `destination` it is a download, with a body an upload, else its content is
/// kept in memory.
package struct TransferRequest: Codable, Sendable, Equatable, StrictlyRead {
    /// `http://` or `https://`, without a user.
    package var url: String
    /// Default: GET, with a body PUT.
    package var method: String?
    /// Those that framing and the connection need are set by the gateway.
    package var headers: [String: String]?
    /// The body, as UTF-8. At most one of `text`, `body`, `data`, `file`, `streamed`.
    package var text: String?
    /// The same as `text`.
    package var body: String?
    /// The body in base64.
    package var data: String?
    /// The file that is sent: a path from the top, below a directory of `control.transfers`.
    package var file: String?
    /// The body follows by PUT …/body, and the transfer begins with it.
    package var streamed: Bool?
    /// The file that the content goes to, as `file`.
    package var destination: String?
    /// Whether a file that is there is replaced. Default: no.
    package var overwrite: Bool?
    /// The name of an entry of `control.transfers.credentials`.
    package var credential: String?
    /// Default: yes; else the redirect is the result.
    package var followRedirects: Bool?
    /// Takes any certificate. Only for tests.
    package var insecure: Bool?
    /// PEM: trusted in place of the system's roots.
    package var authorities: String?
    /// For something to arrive or leave. Default: 60 s.
    package var idleTimeoutMs: Double?
    /// For the whole, time in suspension included. Default: 7 days.
    package var timeoutMs: Double?
    /// Of content kept in memory; at most, and by default, what the configuration allows.
    package var maximumBodyBytes: Int?
    /// Default: yes; else it waits for :resume.
    package var start: Bool?
    /// At most 1024 bytes.
    package var description: String?
    /// 0 to 1. Default: 0.5.
    package var priority: Double?
    /// At most 64, each name and value of at most 256 bytes.
    package var labels: [String: String]?

    package init(
        url: String, method: String? = nil, headers: [String: String]? = nil, text: String? = nil,
        data: String? = nil, file: String? = nil, streamed: Bool? = nil, destination: String? = nil,
        overwrite: Bool? = nil, credential: String? = nil, followRedirects: Bool? = nil, insecure: Bool? = nil,
        authorities: String? = nil,
        idleTimeoutMs: Double? = nil, timeoutMs: Double? = nil, maximumBodyBytes: Int? = nil, start: Bool? = nil,
        description: String? = nil, priority: Double? = nil, labels: [String: String]? = nil
    ) {
        self.url = url
        self.method = method
        self.headers = headers
        self.text = text
        self.data = data
        self.file = file
        self.streamed = streamed
        self.destination = destination
        self.overwrite = overwrite
        self.credential = credential
        self.followRedirects = followRedirects
        self.insecure = insecure
        self.authorities = authorities
        self.idleTimeoutMs = idleTimeoutMs
        self.timeoutMs = timeoutMs
        self.maximumBodyBytes = maximumBodyBytes
        self.start = start
        self.description = description
        self.priority = priority
        self.labels = labels
    }

    package static let members = [
        "url", "method", "headers", "text", "body", "data", "file", "streamed", "destination", "overwrite",
        "credential",
        "followRedirects", "insecure", "authorities", "idleTimeoutMs", "timeoutMs", "maximumBodyBytes", "start",
        "description",
        "priority", "labels",
    ]
}
