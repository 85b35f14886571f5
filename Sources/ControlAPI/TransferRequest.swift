/// POST /v1/transfers: starts a transfer. With `destination` it is a download, with a body an upload; otherwise its
/// content is kept in memory.
package struct TransferRequest: AnnotatedRequest {
    @Member("`http://` or `https://`, without a user.") package var url = ""
    @Member("Default: GET; PUT with a body.") package var method: String?
    @Member("Fields of framing and of the connection are set by the gateway.") package var headers: [String: String]?
    @Member("The body, as UTF-8. At most one of `text`, `body`, `data`, `file`, `streamed`.") package var text: String?
    @Member("Alias of `text`.") package var body: String?
    @Member("The body in base64.") package var data: String?
    @Member("Absolute path of the file to send, below a directory of `control.transfers`.") package var file: String?
    @Member("Whether the body follows by PUT …/body, which starts the transfer.") package var streamed: Bool?
    @Member("Absolute path of the file to write, below a directory of `control.transfers`.")
    package var destination: String?
    @Member("Whether an existing file is replaced. Default: false.") package var overwrite: Bool?
    @Member("Name of an entry of `control.transfers.credentials`.") package var credential: String?
    @Member("Default: true; otherwise the redirect is the result.") package var followRedirects: Bool?
    @Member("Accepts any certificate. Only for tests.") package var insecure: Bool?
    @Member("Certificates in PEM that are trusted instead of the system's roots.") package var authorities: String?
    @Member(.milliseconds(1...31_622_400_000, "Longest time without a byte in either direction. Default: 60 s."))
    package var idleTimeoutMs: Double?
    @Member(.milliseconds(1...31_622_400_000, "For the whole transfer, time in suspension included. Default: 7 days."))
    package var timeoutMs: Double?
    @Member("Limit of content kept in memory. Default and maximum: the configured limit.")
    package var maximumBodyBytes: Int?
    @Member(
        """
        Whether the transfer goes on without the gateway; one that cannot is refused. Default: if it can, and \
        `control.transfers.background` is set.
        """)
    package var background: Bool?
    @Member("Default: true; otherwise the transfer waits for :resume.") package var start: Bool?
    @Member(.text(limit: 1024)) package var description: String?
    @Member(.range(0...1, "A hint. Default: 0.5.")) package var priority: Double?
    @Member(.labels()) package var labels: [String: String]?

    package init() {}
}
