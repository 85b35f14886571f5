/// One HTTP transfer. Timestamps are RFC 3339 in UTC, durations milliseconds, sizes bytes; a member that does not apply
/// is missing.
package struct Transfer: Codable, Sendable, Equatable {
    package var id: String
    /// `data`, `upload` or `download`.
    package var kind: String
    /// `waiting` (for its body), `suspended`, `running`, `cancelling`, `saving`, `finished`, `failed` or `cancelled`.
    package var state: String
    package var method: String
    package var url: String
    /// URL after redirects, if it differs.
    package var currentUrl: String?
    /// Path of the uploaded file.
    package var file: String?
    package var destination: String?
    package var credential: String?
    package var description: String?
    /// 0 to 1; a hint.
    package var priority: Double
    package var labels: [String: String]?
    package var createdAt: String
    /// Time of the last start or restart.
    package var startedAt: String?
    package var endedAt: String?
    /// Counts from 1; :restart begins another attempt.
    package var attempt: Int
    /// Body bytes sent in this attempt.
    package var sentBytes: Int64
    /// Missing if unknown.
    package var expectedSendBytes: Int64?
    /// Content bytes received on the wire, in this attempt.
    package var receivedBytes: Int64
    package var expectedReceiveBytes: Int64?
    /// Size of the destination, with the bytes of earlier attempts.
    package var writtenBytes: Int64?
    package var expectedWriteBytes: Int64?
    /// Offset at which this attempt resumed an earlier one.
    package var resumedAtBytes: Int64?
    /// 0 to 1.
    package var progress: Double?
    /// Size of …/content; missing before the end.
    package var contentBytes: Int64?
    /// Whether :restart can continue from resume data.
    package var canResume: Bool
    package var response: TransferResponse?
    package var error: TransferError?
    package var metrics: TransferMetrics?

    package init(
        id: String, kind: String, state: String, method: String, url: String, destination: String? = nil,
        priority: Double, createdAt: String, startedAt: String? = nil, endedAt: String? = nil, attempt: Int,
        sentBytes: Int64, receivedBytes: Int64, expectedReceiveBytes: Int64? = nil, writtenBytes: Int64? = nil,
        expectedWriteBytes: Int64? = nil, progress: Double? = nil, canResume: Bool,
        response: TransferResponse? = nil, error: TransferError? = nil, metrics: TransferMetrics? = nil
    ) {
        self.id = id
        self.kind = kind
        self.state = state
        self.method = method
        self.url = url
        self.destination = destination
        self.priority = priority
        self.createdAt = createdAt
        self.startedAt = startedAt
        self.endedAt = endedAt
        self.attempt = attempt
        self.sentBytes = sentBytes
        self.receivedBytes = receivedBytes
        self.expectedReceiveBytes = expectedReceiveBytes
        self.writtenBytes = writtenBytes
        self.expectedWriteBytes = expectedWriteBytes
        self.progress = progress
        self.canResume = canResume
        self.response = response
        self.error = error
        self.metrics = metrics
    }
}

/// A page of transfers. The `Link` header has the next page too (RFC 8288).
package struct TransferPage: Codable, Sendable, Equatable {
    package var items: [Transfer]
    /// Path and query of the next page; missing on the last one.
    package var next: String?

    package init(items: [Transfer], next: String? = nil) {
        self.items = items
        self.next = next
    }
}

/// The head of a response.
package struct TransferResponse: Codable, Sendable, Equatable {
    package var status: Int
    /// Values of Set-Cookie are hidden.
    package var headers: [Header]
    /// Media type from Content-Type, without parameters.
    package var mediaType: String?

    package init(status: Int, headers: [Header], mediaType: String? = nil) {
        self.status = status
        self.headers = headers
        self.mediaType = mediaType
    }
}

/// Why a transfer failed. A response of the server is no error, not even 404.
package struct TransferError: Codable, Sendable, Equatable {
    /// Stable, for programs.
    package var code: String
    package var detail: String
    /// Whether another attempt may succeed.
    package var retryable: Bool

    package init(code: String, detail: String, retryable: Bool) {
        self.code = code
        self.detail = detail
        self.retryable = retryable
    }
}

/// Metrics of an attempt.
package struct TransferMetrics: Codable, Sendable, Equatable {
    package var durationMs: Double
    /// Number of followed redirects.
    package var redirects: Int
    /// One for each request, in order.
    package var transactions: [TransferTransaction]

    package init(durationMs: Double, redirects: Int, transactions: [TransferTransaction]) {
        self.durationMs = durationMs
        self.redirects = redirects
        self.transactions = transactions
    }
}

/// Metrics of one request with its response. A duration is missing if its step did not take place or did not complete.
package struct TransferTransaction: Codable, Sendable, Equatable {
    package var method: String
    package var url: String
    package var status: Int?
    /// ALPN name of the protocol.
    package var `protocol`: String?
    /// Whether the connection served an earlier request.
    package var reusedConnection: Bool
    package var localAddress: String?
    package var remoteAddress: String?
    /// `TLS 1.3`, for example.
    package var tlsVersion: String?
    /// Name resolution.
    package var lookupMs: Double?
    /// Connecting, with the TLS handshake.
    package var connectMs: Double?
    /// The TLS handshake.
    package var secureMs: Double?
    /// Sending the request.
    package var requestMs: Double?
    /// From the first byte sent to the response head.
    package var responseAfterMs: Double?
    /// From the response head to the last byte.
    package var responseMs: Double?
    /// Bytes of head and body, with framing.
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

/// POST …:cancel.
package struct TransferCancel: Codable, Sendable, Equatable, StrictDecodable {
    /// Whether received data of a download is kept for :restart. Default: true.
    package var keepResumeData: Bool?

    package init(keepResumeData: Bool? = nil) {
        self.keepResumeData = keepResumeData
    }

    package static let members = ["keepResumeData"]
}

/// POST …:restart: restarts a transfer, from its resume data if there is any.
package struct TransferRestart: Codable, Sendable, Equatable, StrictDecodable {
    /// Discards received data and starts from the beginning. Must be true without resume data. Default: false.
    package var fromBeginning: Bool?

    package init(fromBeginning: Bool? = nil) {
        self.fromBeginning = fromBeginning
    }

    package static let members = ["fromBeginning"]
}
