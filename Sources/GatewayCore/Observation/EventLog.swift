import DequeModule
import SessionTasks
import StreamTransport
import Synchronization
import WebSocketProtocol

/// The latest events, for followers. From any thread.
///
/// A follower has no queue, only the number of the last event it read: one that is too slow misses events, and does not
/// delay the others.
package final class EventLog: Sendable {
    /// Number of events kept.
    package static let standardLimit = 4096

    /// Events after a number.
    package struct Batch: Sendable {
        /// Numbers of the events that were dropped.
        package let missed: ClosedRange<UInt64>?
        package let events: [GatewayEvent]
    }

    private struct State {
        var events: Deque<GatewayEvent> = []
        var last: UInt64 = 0
        var isClosed = false
        var waiting: [UInt64: CheckedContinuation<Void, Never>] = [:]
        var lastWaiting: UInt64 = 0
        /// Last report of each limit, and the number of hits since.
        var limits: [String: (at: Int64, count: Int)] = [:]
    }

    private let limit: Int
    private let state = Mutex(State())

    package init(limit: Int = EventLog.standardLimit) {
        self.limit = max(1, limit)
    }

    /// The number of the latest event; 0 before the first.
    package var last: UInt64 { self.state.withLock { $0.last } }

    package func publish(_ event: GatewayEvent) {
        let waiting = self.state.withLock { Self.add(event, to: &$0, limit: self.limit) }
        for continuation in waiting { continuation.resume() }
    }

    private static func add(
        _ event: GatewayEvent, to state: inout State, limit: Int
    ) -> [CheckedContinuation<Void, Never>] {
        var event = event
        state.last += 1
        event.number = state.last
        event.at = Machine.wallClockMilliseconds()
        if state.events.count >= limit { state.events.removeFirst() }
        state.events.append(event)
        let waiting = Array(state.waiting.values)
        state.waiting = [:]
        return waiting
    }

    /// Records a refused connection. A flood of refusals must not displace all other events: they are reported
    /// together.
    package func limitHit(_ limit: String, listener: String) {
        let now = Machine.wallClockMilliseconds()
        let waiting = self.state.withLock { state -> [CheckedContinuation<Void, Never>] in
            let name = "\(limit) \(listener)"
            let known = state.limits[name] ?? (at: 0, count: 0)
            guard now - known.at >= 1000 else {
                state.limits[name] = (known.at, known.count + 1)
                return []
            }
            state.limits[name] = (now, 0)
            var event = GatewayEvent(.limitHit)
            event.listener = listener
            event.reason = limit
            event.count = known.count + 1
            return Self.add(event, to: &state, limit: self.limit)
        }
        for continuation in waiting { continuation.resume() }
    }

    /// Returns at most `count` events after `number`.
    package func events(after number: UInt64, count: Int = 256) -> Batch {
        self.state.withLock { state in
            // A number of an earlier process: its meaning is unknown.
            if number > state.last { return Batch(missed: number...number, events: []) }
            guard let first = state.events.first, number < state.last else { return Batch(missed: nil, events: []) }
            let missed = number + 1 < first.number ? (number + 1)...(first.number - 1) : nil
            let offset = max(number + 1, first.number) - first.number
            return Batch(missed: missed, events: Array(state.events.dropFirst(Int(offset)).prefix(count)))
        }
    }

    /// Waits until there is an event after `number`, the log is closed, or the awaiting task is cancelled.
    /// - Returns: whether more may come; `nil` when the wait was cancelled.
    package func wait(after number: UInt64) async -> Bool? {
        let waiter = self.state.withLock { state in
            state.lastWaiting += 1
            return state.lastWaiting
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isDone = self.state.withLock { state in
                    let isDone = state.isClosed || state.last > number || Task.isCancelled
                    if !isDone { state.waiting[waiter] = continuation }
                    return isDone
                }
                if isDone { continuation.resume() }
            }
        } onCancel: {
            self.state.withLock { $0.waiting.removeValue(forKey: waiter) }?.resume()
        }
        return self.state.withLock { state in
            // Events published before the end can still be read.
            if state.last > number { return true }
            return state.isClosed ? false : nil
        }
    }

    /// Ends the log and wakes its followers.
    package func close() {
        let waiting = self.state.withLock { state in
            state.isClosed = true
            defer { state.waiting = [:] }
            return Array(state.waiting.values)
        }
        for continuation in waiting { continuation.resume() }
    }
}

/// The text of one event, encoded once for all its followers. From any thread.
package final class EventEncoding: Sendable {
    private let text = Mutex<[UInt8]?>(nil)

    package init() {}

    /// - Parameter encode: called the first time only; the result must not depend on the follower.
    package func text(_ encode: () -> [UInt8]) -> [UInt8] {
        self.text.withLock { text in
            if let text { return text }
            let encoded = encode()
            text = encoded
            return encoded
        }
    }
}

/// An event of the gateway, numbered in the order of publication.
package struct GatewayEvent: Sendable {
    package enum Kind: String, CaseIterable, Sendable {
        case opened, closed
        /// A connection became a WebSocket, or secure.
        case upgraded
        /// A limit refused connections; at most one such event a second for each limit.
        case limitHit
        case upstreamDown, upstreamUp
        case reloaded, reloadFailed
        case drainStarted, drainProgressed, drainEnded
        /// An attempt at a transfer began; completed or was cancelled; failed.
        case transferStarted, transferEnded, transferFailed
    }

    /// From 1 up, without gaps.
    package internal(set) var number: UInt64 = 0
    /// Milliseconds since 1970-01-01T00:00:00Z.
    package internal(set) var at: Int64 = 0
    package let kind: Kind
    package var connection: ConnectionKey?
    package var listener: String?
    package var route: String?
    /// The upstream's name; the requested upstream URL of a tunnel opened through the control plane.
    package var upstream: String?
    /// The URL of the upstream's endpoint.
    package var endpoint: String?
    package var url: String?
    package var peer: String?
    package var user: String?
    /// Why it closed; which limit; to what it was upgraded; how a transfer ended.
    package var reason: String?
    package var detail: String?
    /// Of a connection that closed: the code and the reason of its first Close frame.
    package var closeCode: UInt16?
    package var closeReason: String?
    /// Of a connection that closed: payload both ways.
    package var receivedBytes: UInt64?
    package var sentBytes: UInt64?
    package var labels: [String: String] = [:]
    /// Number of refused or drained connections; attempt of a transfer.
    package var count: Int?
    /// The drain that it belongs to.
    package var drain: String?
    /// The transfer that it is about.
    package var transfer: String?
    package let encoding = EventEncoding()

    package init(_ kind: Kind) {
        self.kind = kind
    }

    /// Adds properties of a connection that closed.
    mutating func add(_ report: ConnectionReport) {
        self.closeCode = report.metadata?.closeCode?.rawValue
        self.closeReason = report.metadata?.closeReason.map { String(decoding: $0, as: UTF8.self) }
        self.receivedBytes = report.record?.bytesReceived ?? 0
        self.sentBytes = report.record?.bytesSent ?? 0
        self.labels = report.labels
    }
}
