/// One HTTP transfer. Timestamps are RFC 3339 in UTC, durations milliseconds, sizes bytes; a member that does not apply
/// is missing.
package struct Transfer: ControlModel {
    @Member package var id = ""
    @Member(.words(["data", "upload", "download"])) package var kind = ""
    @Member(
        .words(
            ["waiting", "suspended", "running", "cancelling", "saving", "finished", "failed", "cancelled"],
            "`waiting`: for its body."))
    package var state = ""
    @Member package var method = ""
    @Member package var url = ""
    @Member("URL after redirects, if it differs.") package var currentUrl: String?
    @Member("Path of the uploaded file.") package var file: String?
    @Member package var destination: String?
    @Member package var credential: String?
    @Member package var description: String?
    @Member("`true` if the transfer goes on without the gateway.") package var background: Bool?
    @Member("0 to 1; a hint.") package var priority: Double = 0
    @Member package var labels: [String: String]?
    @Member(.time()) package var createdAt = ""
    @Member(.time("Time of the last start or restart.")) package var startedAt: String?
    @Member(.time()) package var endedAt: String?
    @Member("Counts from 1; :restart begins another attempt.") package var attempt = 0
    @Member("Body bytes sent in this attempt.") package var sentBytes: Int64 = 0
    @Member("Missing if unknown.") package var expectedSendBytes: Int64?
    @Member("Content bytes received on the wire, in this attempt.") package var receivedBytes: Int64 = 0
    @Member package var expectedReceiveBytes: Int64?
    @Member("Size of the destination, with the bytes of earlier attempts.") package var writtenBytes: Int64?
    @Member package var expectedWriteBytes: Int64?
    @Member("Offset at which this attempt resumed an earlier one.") package var resumedAtBytes: Int64?
    @Member("0 to 1.") package var progress: Double?
    @Member("Size of …/content; missing before the end.") package var contentBytes: Int64?
    @Member("Whether :restart can continue from resume data.") package var canResume = false
    @Member package var response: TransferResponse?
    @Member package var error: TransferError?
    @Member package var metrics: TransferMetrics?

    package init() {}
}

/// A page of transfers. The `Link` header has the next page too (RFC 8288).
package struct TransferPage: ControlModel {
    @Member package var items: [Transfer] = []
    @Member("Path and query of the next page; missing on the last one.") package var next: String?

    package init() {}
}

/// The head of a response.
package struct TransferResponse: ControlModel {
    @Member package var status = 0
    @Member("Values of credentials, like Set-Cookie, are hidden.") package var headers: [Header] = []
    @Member("Media type from Content-Type, without parameters.") package var mediaType: String?

    package init() {}
}

/// Why a transfer failed. A response of the server is no error, not even 404.
package struct TransferError: ControlModel {
    @Member("Stable, for programs.") package var code = ""
    @Member package var detail = ""
    @Member("Whether another attempt may succeed.") package var retryable = false

    package init() {}
}

/// Metrics of an attempt.
package struct TransferMetrics: ControlModel {
    @Member(.milliseconds()) package var durationMs: Double = 0
    @Member("Number of followed redirects.") package var redirects = 0
    @Member("One for each request, in order.") package var transactions: [TransferTransaction] = []

    package init() {}
}

/// Metrics of one request with its response. A duration is missing if its step did not take place or did not complete.
package struct TransferTransaction: ControlModel {
    @Member package var method = ""
    @Member package var url = ""
    @Member package var status: Int?
    @Member("ALPN name of the protocol.") package var `protocol`: String?
    @Member("Whether the connection served an earlier request.") package var reusedConnection = false
    @Member package var localAddress: String?
    @Member package var remoteAddress: String?
    @Member("`TLS 1.3`, for example.") package var tlsVersion: String?
    @Member(.milliseconds("Name resolution.")) package var lookupMs: Double?
    @Member(.milliseconds("Connecting, with the TLS handshake.")) package var connectMs: Double?
    @Member(.milliseconds("The TLS handshake.")) package var secureMs: Double?
    @Member(.milliseconds("Sending the request.")) package var requestMs: Double?
    @Member(.milliseconds("From the first byte sent to the response head.")) package var responseAfterMs: Double?
    @Member(.milliseconds("From the response head to the last byte.")) package var responseMs: Double?
    @Member("Bytes of head and body, with framing.") package var sentBytes: Int64 = 0
    @Member package var receivedBytes: Int64 = 0

    package init() {}
}

/// POST …:cancel.
package struct TransferCancel: StrictDecodable {
    @Member("Whether received data of a download is kept for :restart. Default: true.")
    package var keepResumeData: Bool?

    package init() {}
}

/// POST …:restart: restarts a transfer, from its resume data if there is any.
package struct TransferRestart: StrictDecodable {
    @Member("Discards received data and starts from the beginning. Must be true without resume data. Default: false.")
    package var fromBeginning: Bool?

    package init() {}
}
