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
    /// Content bytes received on the wire, in this attempt.
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

/// A page of transfers. The `Link` header has the next one too (RFC 8288).
package struct TransferPage: Codable, Sendable, Equatable {
    package var items: [Transfer]
    /// The next page's path and query; missing on the last.
    package var next: String?

    package init(
        items: [Transfer], next: String? = nil
    ) {
        self.items = items
        self.next = next
    }
}

/// The head of a response.
package struct TransferResponse: Codable, Sendable, Equatable {
    package var status: Int
    /// Values of Set-Cookie are hidden.
    package var headers: [Header]
    /// As Content-Type says it.
    package var mediaType: String?

    package init(
        status: Int, headers: [Header], mediaType: String? = nil
    ) {
        self.status = status
        self.headers = headers
        self.mediaType = mediaType
    }
}

/// Why a transfer failed. A response of the server, even 404, is no error.
package struct TransferError: Codable, Sendable, Equatable {
    /// Stable; for programs.
    package var code: String
    package var detail: String
    /// Whether another attempt may go better.
    package var retryable: Bool

    package init(
        code: String, detail: String, retryable: Bool
    ) {
        self.code = code
        self.detail = detail
        self.retryable = retryable
    }
}

/// Metrics of an attempt.
package struct TransferMetrics: Codable, Sendable, Equatable {
    package var durationMs: Double
    /// Redirects that were followed.
    package var redirects: Int
    /// One for each request that was made, in their order.
    package var transactions: [TransferTransaction]

    package init(
        durationMs: Double, redirects: Int, transactions: [TransferTransaction]
    ) {
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

/// POST …:cancel.
package struct TransferCancel: Codable, Sendable, Equatable, StrictlyRead {
    /// Whether what a download received is kept for :restart. Default: yes.
    package var keepResumeData: Bool?

    package init(
        keepResumeData: Bool? = nil
    ) {
        self.keepResumeData = keepResumeData
    }

    package static let members = [
        "keepResumeData"
    ]
}

/// POST …:restart: continues from resume data.
package struct TransferRestart: Codable, Sendable, Equatable, StrictlyRead {
    /// Starts from the beginning and discards received data. Required without resume data. Default: false.
    package var fromBeginning: Bool?

    package init(
        fromBeginning: Bool? = nil
    ) {
        self.fromBeginning = fromBeginning
    }

    package static let members = [
        "fromBeginning"
    ]
}
