/// One HTTP transfer, as it is shown. Timestamps are RFC 3339 in UTC, durations milliseconds, sizes bytes; a member that does
/// not apply is missing.
package struct Transfer: Codable, Sendable, Equatable {
    package var id: String
    /// `data`, `upload` or `download`.
    package var kind: String
    /// `waiting` (for its body), `suspended`, `running`, `cancelling`, `saving`, `finished`, `failed` or `cancelled`.
    package var state: String
    package var method: String
    package var url: String
    /// Where redirects led.
    package var currentUrl: String?
    /// The file that is sent.
    package var file: String?
    package var destination: String?
    package var credential: String?
    package var description: String?
    /// 0 to 1; a hint.
    package var priority: Double
    package var labels: [String: String]?
    package var createdAt: String
    /// When it was last begun or restarted.
    package var startedAt: String?
    package var endedAt: String?
    /// From 1; :restart makes another one.
    package var attempt: Int
    /// Of the body, in this attempt.
    package var sentBytes: Int64
    /// Missing where it is not known.
    package var expectedSendBytes: Int64?
    /// Of the content, as it was on the wire, in this attempt.
    package var receivedBytes: Int64
    package var expectedReceiveBytes: Int64?
    /// Of the destination, earlier attempts included.
    package var writtenBytes: Int64?
    package var expectedWriteBytes: Int64?
    /// Bytes of an earlier attempt that this one went on from.
    package var resumedAtBytes: Int64?
    /// 0 to 1.
    package var progress: Double?
    /// Bytes that …/content gives; missing before the end.
    package var contentBytes: Int64?
    /// Whether there is resume data for :restart.
    package var canResume: Bool
    package var response: TransferResponse?
    package var error: TransferError?
    package var metrics: TransferMetrics?

    package init(
        id: String, kind: String, state: String, method: String, url: String, currentUrl: String? = nil,
        file: String? = nil, destination: String? = nil, credential: String? = nil, description: String? = nil,
        priority: Double, labels: [String: String]? = nil, createdAt: String, startedAt: String? = nil,
        endedAt: String? = nil, attempt: Int, sentBytes: Int64, expectedSendBytes: Int64? = nil,
        receivedBytes: Int64, expectedReceiveBytes: Int64? = nil, writtenBytes: Int64? = nil,
        expectedWriteBytes: Int64? = nil, resumedAtBytes: Int64? = nil, progress: Double? = nil,
        contentBytes: Int64? = nil, canResume: Bool, response: TransferResponse? = nil, error: TransferError? = nil,
        metrics: TransferMetrics? = nil
    ) {
        self.id = id
        self.kind = kind
        self.state = state
        self.method = method
        self.url = url
        self.currentUrl = currentUrl
        self.file = file
        self.destination = destination
        self.credential = credential
        self.description = description
        self.priority = priority
        self.labels = labels
        self.createdAt = createdAt
        self.startedAt = startedAt
        self.endedAt = endedAt
        self.attempt = attempt
        self.sentBytes = sentBytes
        self.expectedSendBytes = expectedSendBytes
        self.receivedBytes = receivedBytes
        self.expectedReceiveBytes = expectedReceiveBytes
        self.writtenBytes = writtenBytes
        self.expectedWriteBytes = expectedWriteBytes
        self.resumedAtBytes = resumedAtBytes
        self.progress = progress
        self.contentBytes = contentBytes
        self.canResume = canResume
        self.response = response
        self.error = error
        self.metrics = metrics
    }
}
