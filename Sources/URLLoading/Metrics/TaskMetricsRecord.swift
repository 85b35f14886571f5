import Foundation
import HTTPTransport

/// What becomes the metrics of a task, gathered from its creation on. It belongs to whoever runs the task.
package struct TaskMetricsRecord: Sendable {
    /// Transactions kept at most. A task that goes on, as one whose delegate never tires of offering credentials, keeps
    /// the first ones and the last.
    package static let transactionLimit = 256

    private let anchor: WallClockAnchor
    private let creation: ContinuousClock.Instant
    private var transactions: [TransactionRecord] = []
    package private(set) var redirectCount = 0

    /// - Parameter date: what the calendar says at `instant`.
    package init(createdAt instant: ContinuousClock.Instant = .now, date: Date = Date()) {
        self.anchor = WallClockAnchor(at: instant, date: date)
        self.creation = instant
    }

    /// Adds a transaction that has ended, in whatever way; in the order in which they began.
    package mutating func add(_ transaction: TransactionRecord) {
        if self.transactions.count == Self.transactionLimit { self.transactions.removeLast() }
        self.transactions.append(transaction)
    }

    /// A redirection is followed.
    package mutating func countRedirect() {
        self.redirectCount += 1
    }

    package func metrics(completedAt end: ContinuousClock.Instant = .now) -> URLSessionTaskMetrics {
        let seconds = max(.zero, end - self.creation) / .seconds(1)
        return URLSessionTaskMetrics(
            transactions: self.transactions.map { URLSessionTaskTransactionMetrics($0, self.anchor) },
            interval: DateInterval(start: self.anchor.date(of: self.creation), duration: seconds),
            redirectCount: self.redirectCount)
    }
}

/// One request with its response, as the loader counted it.
package struct TransactionRecord: Sendable {
    package enum Source: Sendable, Hashable {
        case network(ExchangeMetrics)
        /// A response that was stored served as it was.
        case cache(LocalTimings)
        /// Neither: a `data` or `file` URL, or a `URLProtocol`.
        case other(LocalTimings)
    }

    package var request: URLRequest
    /// `nil` if none came.
    package var response: URLResponse?
    package var source: Source
    /// Bytes of the content after its content coding was undone.
    package var decodedBytes: Int64

    package init(request: URLRequest, response: URLResponse?, source: Source, decodedBytes: Int64) {
        self.request = request
        self.response = response
        self.source = source
        self.decodedBytes = decodedBytes
    }

    /// What the network gave, if it was asked.
    var exchange: ExchangeMetrics? {
        if case .network(let metrics) = self.source { metrics } else { nil }
    }

    func dates(_ anchor: WallClockAnchor) -> TransactionDates {
        switch self.source {
        case .network(let metrics): TransactionDates(metrics, anchor)
        case .cache(let timings), .other(let timings): TransactionDates(timings, anchor)
        }
    }

    var fetchType: URLSessionTaskMetrics.ResourceFetchType {
        switch self.source {
        case .network: .networkLoad
        case .cache: .localCache
        case .other: .unknown
        }
    }
}

/// When the steps of one transaction were taken. Of a step that began and did not end, the end is `nil`, and so is all
/// that would come behind it.
package struct TransactionDates: Sendable, Hashable {
    package private(set) var fetchStart: Date?
    package private(set) var lookupStart: Date?
    package private(set) var lookupEnd: Date?
    package private(set) var connectStart: Date?
    package private(set) var secureStart: Date?
    package private(set) var secureEnd: Date?
    package private(set) var connectEnd: Date?
    package private(set) var requestStart: Date?
    package private(set) var requestEnd: Date?
    package private(set) var responseStart: Date?
    package private(set) var responseEnd: Date?

    /// Of nothing.
    init() {}

    /// Of an exchange. What opening took counts for the one that opened, not for those that use the connection again.
    package init(_ metrics: ExchangeMetrics, _ anchor: WallClockAnchor) {
        var walk = Walk(anchor: anchor)
        self.fetchStart = walk.begin(metrics.fetchStart)
        if metrics.connection?.isReused != true { self.open(metrics.timings, &walk) }
        self.requestStart = walk.begin(metrics.requestStart)
        // A server may answer a request before it has all of it: where that answer is whole, it ended the sending.
        let requestEnd = metrics.requestEnd ?? (metrics.responseEnd == nil ? nil : metrics.responseStart)
        self.requestEnd = walk.end(requestEnd, of: self.requestStart)
        self.responseStart = walk.begin(metrics.responseStart)
        self.responseEnd = walk.end(metrics.responseEnd, of: self.responseStart)
    }

    /// Of a load without network.
    package init(_ timings: LocalTimings, _ anchor: WallClockAnchor) {
        var walk = Walk(anchor: anchor)
        self.fetchStart = walk.begin(timings.fetchStart)
        self.requestStart = self.fetchStart
        self.requestEnd = walk.end(timings.responseStart, of: self.requestStart)
        self.responseStart = walk.begin(timings.responseStart)
        self.responseEnd = walk.end(timings.responseEnd, of: self.responseStart)
    }

    private mutating func open(_ timings: ConnectTimings, _ walk: inout Walk) {
        self.lookupStart = walk.begin(timings.lookupStart)
        // A lookup that was answered, and not with an address, leads to no attempt at connecting.
        let lookupEnd = timings.connectStart == nil ? nil : timings.lookupEnd
        self.lookupEnd = walk.end(lookupEnd, of: self.lookupStart)
        self.connectStart = walk.begin(timings.connectStart)
        self.secureStart = walk.begin(timings.secureStart)
        self.secureEnd = walk.end(timings.secureEnd, of: self.secureStart)
        self.connectEnd = walk.end(timings.connectEnd, of: self.connectStart)
    }

    /// Goes through the steps in their order, up to the one that did not end.
    private struct Walk {
        let anchor: WallClockAnchor
        private var isOver = false

        init(anchor: WallClockAnchor) {
            self.anchor = anchor
        }

        func begin(_ instant: ContinuousClock.Instant?) -> Date? {
            self.isOver ? nil : instant.map(self.anchor.date)
        }

        /// - Parameter begun: when the step began; `nil` if it was not taken.
        mutating func end(_ instant: ContinuousClock.Instant?, of begun: Date?) -> Date? {
            guard !self.isOver, begun != nil else { return nil }
            self.isOver = instant == nil
            return instant.map(self.anchor.date)
        }
    }
}

/// When the steps of a load were taken that used no network.
package struct LocalTimings: Sendable, Hashable {
    package var fetchStart: ContinuousClock.Instant
    /// When the response was there; `nil` if it never was.
    package var responseStart: ContinuousClock.Instant?
    /// When its last byte was there.
    package var responseEnd: ContinuousClock.Instant?

    package init(
        fetchStart: ContinuousClock.Instant, responseStart: ContinuousClock.Instant? = nil,
        responseEnd: ContinuousClock.Instant? = nil
    ) {
        self.fetchStart = fetchStart
        self.responseStart = responseStart
        self.responseEnd = responseEnd
    }
}

/// Where a clock that never goes back stands on the calendar. All dates made through one anchor keep the order of their
/// instants, whatever happens to the system's time meanwhile.
package struct WallClockAnchor: Sendable, Hashable {
    private let instant: ContinuousClock.Instant
    private let date: Date

    /// - Parameter date: what the calendar says at `instant`.
    package init(at instant: ContinuousClock.Instant = .now, date: Date = Date()) {
        self.instant = instant
        self.date = date
    }

    package func date(of instant: ContinuousClock.Instant) -> Date {
        self.date + (instant - self.instant) / .seconds(1)
    }
}
