import Foundation
import HTTPTransport
import StreamTransport

/// Collects the metrics of a task from its creation. Owned by the task's driver.
package struct TaskMetricsRecord: Sendable {
    /// Limit for recorded transactions. A task with more, as one whose delegate keeps offering credentials, records the
    /// first ones and the last.
    package static let transactionLimit = 256

    private let anchor: WallClockAnchor
    private let creation: ContinuousInstant
    private var transactions: [TransactionRecord] = []
    package private(set) var redirectCount = 0

    /// - Parameter date: the wall-clock time at `instant`.
    package init(createdAt instant: ContinuousInstant = .now, date: Date = Date()) {
        self.anchor = WallClockAnchor(at: instant, date: date)
        self.creation = instant
    }

    /// Adds a transaction that has ended. Transactions are added in the order of their start.
    package mutating func add(_ transaction: TransactionRecord) {
        if self.transactions.count == Self.transactionLimit { self.transactions.removeLast() }
        self.transactions.append(transaction)
    }

    package mutating func countRedirect() {
        self.redirectCount += 1
    }

    package func metrics(completedAt end: ContinuousInstant = .now) -> URLSessionTaskMetrics {
        let seconds = max(.zero, end - self.creation) / .seconds(1)
        return URLSessionTaskMetrics(
            transactions: self.transactions.map { URLSessionTaskTransactionMetrics($0, self.anchor) },
            interval: DateInterval(start: self.anchor.date(of: self.creation), duration: seconds),
            redirectCount: self.redirectCount)
    }
}

/// The measurements of one request and its response.
package struct TransactionRecord: Sendable {
    package enum Source: Sendable, Hashable {
        case network(ExchangeMetrics)
        /// A cached response, used without validation.
        case cache(LocalTimings)
        /// A `data` or `file` URL, or a `URLProtocol`.
        case other(LocalTimings)
    }

    package var request: URLRequest
    /// `nil` if none was received.
    package var response: URLResponse?
    package var source: Source
    /// Bytes of the content after its content coding was removed.
    package var decodedBytes: Int64

    package init(request: URLRequest, response: URLResponse?, source: Source, decodedBytes: Int64) {
        self.request = request
        self.response = response
        self.source = source
        self.decodedBytes = decodedBytes
    }

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

/// The dates of the steps of one transaction. If a step started and did not end, its end and all later dates are `nil`.
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

    init() {}

    /// Dates of an HTTP exchange. Connecting counts only for the exchange that opened the connection.
    package init(_ metrics: ExchangeMetrics, _ anchor: WallClockAnchor) {
        var steps = Steps(anchor: anchor)
        self.fetchStart = steps.start(metrics.fetchStart)
        if metrics.connection?.isReused != true { self.setConnectDates(metrics.timings, &steps) }
        self.requestStart = steps.start(metrics.requestStart)
        // A server may respond before it has received the whole request; a complete response then ends the request.
        let requestEnd = metrics.requestEnd ?? (metrics.responseEnd == nil ? nil : metrics.responseStart)
        self.requestEnd = steps.end(requestEnd, startedAt: self.requestStart)
        self.responseStart = steps.start(metrics.responseStart)
        self.responseEnd = steps.end(metrics.responseEnd, startedAt: self.responseStart)
    }

    /// Dates of a load that used no network.
    package init(_ timings: LocalTimings, _ anchor: WallClockAnchor) {
        var steps = Steps(anchor: anchor)
        self.fetchStart = steps.start(timings.fetchStart)
        self.requestStart = self.fetchStart
        self.requestEnd = steps.end(timings.responseStart, startedAt: self.requestStart)
        self.responseStart = steps.start(timings.responseStart)
        self.responseEnd = steps.end(timings.responseEnd, startedAt: self.responseStart)
    }

    private mutating func setConnectDates(_ timings: ConnectTimings, _ steps: inout Steps) {
        self.lookupStart = steps.start(timings.lookupStart)
        // A lookup without a connection attempt found no address: it counts as not ended.
        let lookupEnd = timings.connectStart == nil ? nil : timings.lookupEnd
        self.lookupEnd = steps.end(lookupEnd, startedAt: self.lookupStart)
        self.connectStart = steps.start(timings.connectStart)
        self.secureStart = steps.start(timings.secureStart)
        self.secureEnd = steps.end(timings.secureEnd, startedAt: self.secureStart)
        self.connectEnd = steps.end(timings.connectEnd, startedAt: self.connectStart)
    }

    /// Converts the instants of the steps in their order, up to the step that did not end.
    private struct Steps {
        let anchor: WallClockAnchor
        private var isInterrupted = false

        init(anchor: WallClockAnchor) {
            self.anchor = anchor
        }

        func start(_ instant: ContinuousInstant?) -> Date? {
            self.isInterrupted ? nil : instant.map(self.anchor.date)
        }

        /// - Parameter start: when the step started; `nil` if it did not.
        mutating func end(_ instant: ContinuousInstant?, startedAt start: Date?) -> Date? {
            guard !self.isInterrupted, start != nil else { return nil }
            self.isInterrupted = instant == nil
            return instant.map(self.anchor.date)
        }
    }
}

/// The timings of a load that used no network.
package struct LocalTimings: Sendable, Hashable {
    package var fetchStart: ContinuousInstant
    /// `nil` if there was no response.
    package var responseStart: ContinuousInstant?
    package var responseEnd: ContinuousInstant?

    package init(
        fetchStart: ContinuousInstant, responseStart: ContinuousInstant? = nil,
        responseEnd: ContinuousInstant? = nil
    ) {
        self.fetchStart = fetchStart
        self.responseStart = responseStart
        self.responseEnd = responseEnd
    }
}

/// Converts instants of the monotonic clock to wall-clock dates. Dates from one anchor keep the order of their
/// instants, even if the system's time changes in between.
package struct WallClockAnchor: Sendable, Hashable {
    private let instant: ContinuousInstant
    private let date: Date

    /// - Parameter date: the wall-clock time at `instant`.
    package init(at instant: ContinuousInstant = .now, date: Date = Date()) {
        self.instant = instant
        self.date = date
    }

    package func date(of instant: ContinuousInstant) -> Date {
        self.date + (instant - self.instant) / .seconds(1)
    }
}
