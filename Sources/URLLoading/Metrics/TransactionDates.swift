import Foundation
import HTTPTransport

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
