import ControlAPI
import GatewayConfiguration
import GatewayCore
import StreamTransport
import Synchronization
import WebSocketProtocol

/// Runs one drain: closes connections at a rate, and resets those that remain at the deadline.
actor DrainRun {
    /// Longest sleep, used while a drain without a deadline is paused.
    private static let longestSleep = Duration.seconds(3600)

    nonisolated let id: String
    /// Nothing changes any more: `run` has returned or is about to.
    nonisolated let ended = OneTimeEvent()
    private let gateway: Gateway
    private let selection: BulkSelection
    private let keys: [ConnectionKey]
    private let pace: DrainPace
    private let deadline: MonotonicInstant?
    private let anchor: TimeAnchor
    private var times: DrainTimes
    private var state = DrainState.running {
        didSet { self.drain.state = self.state.rawValue }
    }
    private(set) var drain: Drain
    /// The sleep until the next close; cancelled when the drain is paused, resumed or cancelled.
    private var sleeping: Task<Void, Never>?

    init(
        id: String, _ selection: BulkSelection, _ keys: [ConnectionKey], pace: DrainPace, context: ControlContext
    ) {
        let (gateway, anchor) = (context.gateway, context.anchor)
        let now = gateway.now
        var generator = SystemRandomNumberGenerator()
        self.id = id
        self.drain = Drain {
            $0.id = context.qualified(id)
            $0.node = context.node
            $0.state = DrainState.running.rawValue
            $0.total = keys.count
            $0.remaining = keys.count
            $0.startedAt = anchor.text(now)
        }
        self.selection = selection
        self.keys = keys
        self.pace = pace
        self.deadline = pace.deadline.map { now.advanced(by: $0) }
        self.gateway = gateway
        self.anchor = anchor
        self.times = pace.times(for: keys.count, from: now, using: &generator)
        self.drain.deadlineAt = self.deadline.map { anchor.text($0) }
    }

    private var isLate: Bool { self.deadline.map { self.gateway.now >= $0 } ?? false }

    func run() async {
        self.publish(.drainStarted)
        var reportedAt = self.gateway.now
        while !self.state.isOver, !self.isLate, !self.times.isComplete {
            guard let index = self.times.takeDue(at: self.gateway.now) else {
                await self.sleep()
                continue
            }
            _ = await self.selection.close(self.keys[index], in: self.gateway)
            self.drain.notified += 1
            if reportedAt.duration(to: self.gateway.now) >= .seconds(1) {
                reportedAt = self.gateway.now
                self.publish(.drainProgressed)
            }
        }
        await self.awaitClosed()
        if self.state == .cancelled { _ = await self.remaining() }
        self.updateForecast()
        self.state.finish()
        self.drain.endedAt = self.anchor.text(self.gateway.now)
        self.ended.occur()
        self.publish(.drainEnded)
    }

    /// Sleeps until the next close or the deadline.
    private func sleep() async {
        let next = [self.times.next, self.deadline].compactMap(\.self).min()
        let pause = min(next.map { self.gateway.now.duration(to: $0) } ?? Self.longestSleep, Self.longestSleep)
        guard pause > .zero else { return }
        let sleep = Task { _ = try? await Task.sleep(for: pause, tolerance: .milliseconds(1)) }
        self.sleeping = sleep
        await sleep.value
    }

    /// Computes when the last connection will be closed, and how many miss the deadline.
    private func updateForecast() {
        let now = self.gateway.now
        self.drain.lastNotifiedAt = self.anchor.text(self.times.end(at: now))
        let late = self.deadline.map { self.times.count(from: $0, at: now) } ?? 0
        self.drain.unnotified = late
        self.drain.warning = late > 0 ? self.pace.warning(late: late, of: self.keys.count) : nil
    }

    /// Waits until all connections are closed, and resets the remaining ones at the deadline.
    private func awaitClosed() async {
        while !self.state.isOver {
            let remaining = await self.remaining()
            if remaining.isEmpty { return }
            if self.isLate {
                for key in remaining where await self.gateway.abort(key) { self.drain.cut += 1 }
                self.drain.remaining = 0
                return
            }
            try? await Task.sleep(for: .milliseconds(100))
        }
    }

    /// The connections that are still open. Updates their count in `drain`.
    private func remaining() async -> [ConnectionKey] {
        let live = Set(await self.gateway.liveIdentifiers())
        let remaining = self.keys.filter { live.contains($0.number) }
        // The drain may have ended during the await; its final count stays.
        if self.drain.endedAt == nil { self.drain.remaining = remaining.count }
        return remaining
    }

    /// The current state; after the end, the state at the end.
    func snapshot() async -> Drain {
        if self.drain.endedAt == nil {
            _ = await self.remaining()
            if self.drain.endedAt == nil { self.updateForecast() }
        }
        return self.drain
    }

    private func publish(_ kind: GatewayEvent.Kind) {
        var event = GatewayEvent(kind)
        event.drain = self.drain.id
        event.count = kind == .drainStarted ? self.drain.total : self.drain.notified
        self.gateway.eventLog?.publish(event)
    }

    // MARK: Control

    /// - Returns: `false` if the drain is not running.
    func pause() -> Bool {
        guard self.state.pause() else { return false }
        self.times.pause(at: self.gateway.now)
        self.sleeping?.cancel()
        return true
    }

    /// - Returns: `false` if the drain is not paused.
    func resume() -> Bool {
        guard self.state.resume() else { return false }
        self.times.resume(at: self.gateway.now)
        self.sleeping?.cancel()
        return true
    }

    /// - Returns: `false` if the drain is over.
    func cancel() -> Bool {
        guard self.state.cancel() else { return false }
        self.sleeping?.cancel()
        return true
    }
}

/// The running and recent drains. Bounded: the oldest ended one is dropped.
final class DrainRegistry: Sendable {
    private static let limit = 64
    private static let full = ControlProblem(
        429, "too-many-drains",
        "\(DrainRegistry.limit) drains are running already; wait for one to end, or cancel one."
    ).retryable(after: 1)

    private let records = Mutex(
        BoundedRecords<DrainRun>(limit: DrainRegistry.limit, full: DrainRegistry.full) { $0.ended.hasOccurred })

    func find(_ id: String) -> DrainRun? {
        self.records.withLock { $0.records.first { $0.id == id } }
    }

    var all: [Drain] {
        get async {
            var drains: [Drain] = []
            for run in self.records.withLock({ $0.records }) { drains.append(await run.snapshot()) }
            return drains
        }
    }

    /// - Throws: `ControlProblem` 429 at the limit of running drains.
    func add(_ make: (String) -> DrainRun) throws(ControlProblem) -> DrainRun {
        try self.records.withLock { (records) throws(ControlProblem) in try records.add { make("\($0)") } }
    }
}

/// The rate and the deadline of a drain.
struct DrainPace: Sendable {
    /// Connections per second, in `DrainTimes.rates`.
    private let rate: Double
    /// Largest random delay of each close.
    private let jitter: Duration
    /// From the start of the drain.
    let deadline: Duration?

    /// - Throws: `ControlProblem` 422 with a pointer to a number that is out of range.
    init(_ request: BulkRequest) throws(ControlProblem) {
        self.rate = request.ratePerSecond ?? 100
        guard DrainTimes.rates.contains(self.rate) else {
            throw .invalid("/ratePerSecond", "ratePerSecond must be from 0.001 to 100000.")
        }
        self.jitter = OpenRequestParser.duration(request.jitterMs) ?? .zero
        self.deadline = OpenRequestParser.duration(request.deadlineMs)
    }

    func times(
        for count: Int, from now: MonotonicInstant, using generator: inout some RandomNumberGenerator
    ) -> DrainTimes {
        DrainTimes(count: count, rate: self.rate, jitter: self.jitter, began: now, using: &generator)
    }

    /// The forecast for a drain of `count` connections.
    func preview(of count: Int) -> BulkAnswer {
        var generator = SystemRandomNumberGenerator()
        let began = MonotonicInstant(nanoseconds: 0)
        let times = self.times(for: count, from: began, using: &generator)
        let late = self.deadline.map { times.count(from: began.advanced(by: $0), at: began) } ?? 0
        return BulkAnswer {
            $0.matched = count
            $0.takesMs = Int(began.duration(to: times.end(at: began)).clampedNanoseconds / 1_000_000)
            $0.warning = late > 0 ? self.warning(late: late, of: count) : nil
        }
    }

    /// - Parameter late: connections whose turn comes at the deadline or later.
    func warning(late: Int, of count: Int) -> String {
        let rate = Int(exactly: self.rate).map { "\($0)" } ?? "\(self.rate)"
        let jitter = self.jitter > .zero ? " with a jitter of \(DurationText(self.jitter))" : ""
        let deadline = self.deadline.map { "\(DurationText($0))" } ?? "none"
        return """
            \(late) of \(count) connections are reset at the deadline of \(deadline) without a graceful close: \
            \(rate) a second\(jitter) takes longer. Raise the rate or the deadline.
            """
    }
}

/// The validated body of a bulk request: which connections to close, and how.
package struct BulkSelection: Sendable {
    /// Query parameters that override members of the body.
    static let parameters: [String: JSONValue] = [
        "all": .boolean("Overrides the member of the body."), "preview": .boolean("Overrides the member of the body."),
    ]

    package let filter: ConnectionFilter
    package let signal: CloseSignal
    package let isAbort: Bool
    package let isPreview: Bool

    /// - Throws: `ControlProblem`; also for a selector that selects everything without `all`.
    package init(_ request: BulkRequest, defaultCode: UInt16) throws(ControlProblem) {
        self.filter = try BulkSelector(request.selector ?? [:]).filter
        guard !self.filter.isEmpty || request.all == true else {
            throw .invalid("/selector", "An empty selector selects every connection: confirm with all=true.")
        }
        guard !self.filter.includesClosed else {
            throw .invalid("/selector/state", "A closed connection cannot be closed.")
        }
        let reason = Array((request.reason ?? "").utf8)
        let code = request.code.flatMap { UInt16(exactly: $0) } ?? (request.code == nil ? defaultCode : 0)
        guard CloseCode(rawValue: code).isAllowedOnWire else {
            throw .invalid("/code", "code must be 1000 to 1003, 1007 to 1014, or 3000 to 4999 (RFC 6455 §7.4).")
        }
        self.signal = CloseSignal(code: code, reason: reason)
        self.isAbort = request.abort == true
        self.isPreview = request.preview == true
    }

    func close(_ key: ConnectionKey, in gateway: Gateway) async -> Bool {
        self.isAbort ? await gateway.abort(key) : await gateway.stop(key, self.signal)
    }
}

/// The selector of a bulk request: the filters of the connection list as JSON members.
private struct BulkSelector {
    let filter: ConnectionFilter

    /// - Throws: `ControlProblem` 422 with a pointer to the invalid member.
    init(_ members: [String: JSONValue]) throws(ControlProblem) {
        var pairs: [(name: String, value: String)] = []
        for (name, value) in members.sorted(by: { $0.key < $1.key }) {
            let known = name == "labels" ? "label" : name
            guard ConnectionFilter.parameters[known] != nil else {
                throw .invalid(
                    Self.pointer(name),
                    "A selector may have \(ConnectionFilter.parameters.keys.sorted().joined(separator: ", ")).")
            }
            for text in try Self.texts(value, of: known, at: Self.pointer(name)) { pairs.append((known, text)) }
        }
        do throws(ControlProblem) {
            self.filter = try ConnectionFilter(Query(pairs: pairs))
        } catch {
            // Replaces the query parameter by a pointer to the member.
            throw .invalid("/selector/\(error.errors.first?.parameter ?? "")", error.detail)
        }
    }

    private static func pointer(_ name: String) -> String {
        JSONPointer.member(name, of: "/selector")
    }

    private static func texts(
        _ value: JSONValue, of name: String, at pointer: String
    ) throws(ControlProblem) -> [String] {
        switch value {
        case .null: return []
        case .boolean(let value): return [value ? "true" : "false"]
        case .integer(let value): return ["\(value)"]
        case .number(let value): return ["\(value)"]
        case .string(let value): return [value]
        case .array(let values):
            guard !values.isEmpty else {
                throw .invalid(pointer, "The list is empty; give a value, or leave \(name) out.")
            }
            var texts: [String] = []
            for value in values { texts += try self.texts(value, of: name, at: pointer) }
            return texts
        case .object(let members):
            guard name == "label" else {
                throw ControlProblem(422, "wrong-type", "\(pointer) must be a value, or a list of values.").at(
                    pointer: pointer)
            }
            var texts: [String] = []
            for member in members {
                texts += try self.texts(member.value, of: name, at: pointer).map { "\(member.name):\($0)" }
            }
            return texts
        }
    }
}
