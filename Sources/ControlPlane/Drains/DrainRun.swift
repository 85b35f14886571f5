import ControlAPI
import GatewayConfiguration
import GatewayCore
import StreamTransport
import Synchronization
import WebSocketProtocol

/// One drain on its way.
actor DrainRun {
    /// Longest sleep of a drain that has nothing to do before: one that is paused, without a deadline.
    private static let longestSleep = Duration.seconds(3600)

    private let gateway: Gateway
    private let order: BulkSelection
    private let keys: [ConnectionKey]
    private let pace: DrainPace
    private let deadline: MonotonicInstant?
    private let anchor: TimeAnchor
    private var timetable: DrainTimes
    private(set) var drain: Drain
    /// Until the next one is to be told; ended early by whatever changes that.
    private var sleeping: Task<Void, Never>?

    init(
        id: String, _ order: BulkSelection, _ keys: [ConnectionKey], pace: DrainPace, gateway: Gateway,
        anchor: TimeAnchor
    ) {
        let now = gateway.now
        var generator = SystemRandomNumberGenerator()
        self.drain = Drain(id: id, state: "running", total: keys.count, startedAt: anchor.text(now))
        self.order = order
        self.keys = keys
        self.pace = pace
        self.deadline = pace.deadline.map { now.advanced(by: $0) }
        self.gateway = gateway
        self.anchor = anchor
        self.timetable = pace.timetable(for: keys.count, from: now, using: &generator)
        self.drain.deadlineAt = self.deadline.map { anchor.text($0) }
    }

    private var isOver: Bool { self.drain.state == "cancelled" || self.drain.state == "ended" }
    private var isLate: Bool { self.deadline.map { self.gateway.now >= $0 } ?? false }

    func run() async {
        self.tell(.drainStarted)
        var told = self.gateway.now
        while !self.isOver, !self.isLate, !self.timetable.isComplete {
            guard let index = self.timetable.takeDue(at: self.gateway.now) else {
                await self.sleep()
                continue
            }
            _ = await self.order.close(self.keys[index], in: self.gateway)
            self.drain.told += 1
            if told.duration(to: self.gateway.now) >= .seconds(1) {
                told = self.gateway.now
                self.tell(.drainProgressed)
            }
        }
        await self.awaitEnds()
        if self.drain.state == "cancelled" { _ = await self.left() }
        self.foresee()
        if !self.isOver { self.drain.state = "ended" }
        self.drain.endedAt = self.anchor.text(self.gateway.now)
        self.tell(.drainEnded)
    }

    /// Until the next one is to be told, or the deadline.
    private func sleep() async {
        let next = [self.timetable.next, self.deadline].compactMap(\.self).min()
        let pause = min(next.map { self.gateway.now.duration(to: $0) } ?? Self.longestSleep, Self.longestSleep)
        guard pause > .zero else { return }
        let sleep = Task { _ = try? await Task.sleep(for: pause, tolerance: .milliseconds(1)) }
        self.sleeping = sleep
        await sleep.value
    }

    /// Says when the last one will be told, and for how many that is too late.
    private func foresee() {
        let now = self.gateway.now
        self.drain.lastToldAt = self.anchor.text(self.timetable.end(at: now))
        let late = self.deadline.map { self.timetable.count(from: $0, at: now) } ?? 0
        self.drain.untold = late
        self.drain.warning = late > 0 ? self.pace.warning(late: late, of: self.keys.count) : nil
    }

    /// Waits until those that were told are gone, and cuts them at the deadline.
    private func awaitEnds() async {
        while !self.isOver {
            let left = await self.left()
            if left.isEmpty { return }
            if self.isLate {
                for key in left where await self.gateway.abort(key) { self.drain.cut += 1 }
                self.drain.remaining = 0
                return
            }
            try? await Task.sleep(for: .milliseconds(100))
        }
    }

    /// Those that are still there, which it counts.
    private func left() async -> [ConnectionKey] {
        let live = Set(await self.gateway.liveIdentifiers())
        let left = self.keys.filter { live.contains($0.number) }
        // Meanwhile it may have come to its end, whose count stands.
        if self.drain.endedAt == nil { self.drain.remaining = left.count }
        return left
    }

    /// As it is now; once it is over, as it was then.
    func snapshot() async -> Drain {
        if self.drain.endedAt == nil {
            _ = await self.left()
            if self.drain.endedAt == nil { self.foresee() }
        }
        return self.drain
    }

    private func tell(_ kind: GatewayEvent.Kind) {
        var event = GatewayEvent(kind)
        event.drain = self.drain.id
        event.count = kind == .drainStarted ? self.drain.total : self.drain.told
        self.gateway.eventLog?.publish(event)
    }

    // MARK: Steering

    /// - Returns: whether that was possible.
    func pause() -> Bool {
        guard self.move(from: "running", to: "paused") else { return false }
        self.timetable.pause(at: self.gateway.now)
        return true
    }

    func resume() -> Bool {
        guard self.move(from: "paused", to: "running") else { return false }
        self.timetable.resume(at: self.gateway.now)
        return true
    }

    func cancel() -> Bool {
        guard !self.isOver else { return false }
        self.drain.state = "cancelled"
        self.sleeping?.cancel()
        return true
    }

    private func move(from old: String, to new: String) -> Bool {
        guard self.drain.state == old else { return false }
        self.drain.state = new
        self.sleeping?.cancel()
        return true
    }
}

/// The drains that are under way or were. Bounded: the oldest that is over makes room.
final class DrainRegistry: Sendable {
    static let limit = 64

    private struct State {
        var runs: [(id: String, run: DrainRun)] = []
        var last = 0
    }

    private let state = Mutex(State())

    func find(_ id: String) -> DrainRun? {
        self.state.withLock { $0.runs.first { $0.id == id }?.run }
    }

    var all: [Drain] {
        get async {
            var drains: [Drain] = []
            for run in self.state.withLock({ $0.runs.map(\.run) }) { drains.append(await run.snapshot()) }
            return drains
        }
    }

    func add(_ make: (String) -> DrainRun) -> DrainRun? {
        self.state.withLock { state in
            if state.runs.count >= Self.limit { state.runs.removeFirst() }
            state.last += 1
            let id = "\(state.last)"
            let run = make(id)
            state.runs.append((id, run))
            return run
        }
    }
}

/// How fast a drain is to go, and when it is to be over.
struct DrainPace: Sendable {
    /// Connections each second, in `DrainTimes.rates`.
    let rate: Double
    /// Each is told up to so much later.
    let jitter: Duration
    /// From the beginning; `nil` for none.
    let deadline: Duration?

    /// - Throws: `ControlProblem` 422 with the place of a number that cannot be meant.
    init(_ request: BulkRequest) throws(ControlProblem) {
        self.rate = request.ratePerSecond ?? 100
        guard DrainTimes.rates.contains(self.rate) else {
            throw .invalid("/ratePerSecond", "ratePerSecond must be from 0.001 to 100000.")
        }
        self.jitter = try OpenRequestParser.duration(request.jitterMs, "/jitterMs", in: 0...3_600_000) ?? .zero
        self.deadline = try OpenRequestParser.duration(request.deadlineMs, "/deadlineMs", in: 0...86_400_000)
    }

    func timetable(
        for count: Int, from now: MonotonicInstant, using generator: inout some RandomNumberGenerator
    ) -> DrainTimes {
        DrainTimes(count: count, rate: self.rate, jitter: self.jitter, began: now, using: &generator)
    }

    /// What a drain of so many would be: how long it takes, and what it does not get done.
    func preview(of count: Int) -> BulkAnswer {
        var generator = SystemRandomNumberGenerator()
        let began = MonotonicInstant(nanoseconds: 0)
        let timetable = self.timetable(for: count, from: began, using: &generator)
        let late = self.deadline.map { timetable.count(from: began.advanced(by: $0), at: began) } ?? 0
        var answer = BulkAnswer(matched: count, told: 0)
        answer.takesMs = Int(began.duration(to: timetable.end(at: began)).clampedNanoseconds / 1_000_000)
        answer.warning = late > 0 ? self.warning(late: late, of: count) : nil
        return answer
    }

    /// - Parameter late: connections whose time comes at the deadline or after it.
    func warning(late: Int, of count: Int) -> String {
        let jitter = self.jitter > .zero ? " with a jitter of \(DurationText(self.jitter))" : ""
        let deadline = self.deadline.map { "\(DurationText($0))" } ?? "none"
        return """
            \(late) of \(count) connections are reset at the deadline of \(deadline) without being told to end: \
            \(self.rateText) a second\(jitter) takes longer. Raise the rate or the deadline.
            """
    }

    private var rateText: String {
        Int(exactly: self.rate).map { "\($0)" } ?? "\(self.rate)"
    }
}

/// A bulk request, understood.
package struct BulkSelection: Sendable {
    /// Of the query, in place of members of the body.
    package static let parameters: Set<String> = ["all", "preview"]

    package let filter: ConnectionFilter
    package let signal: CloseSignal
    package let isAbort: Bool
    package let isPreview: Bool

    /// - Throws: `ControlProblem`; also for a selector that would mean everything without `all`.
    package init(_ request: BulkRequest, defaultCode: UInt16) throws(ControlProblem) {
        self.filter = try BulkSelector(request.selector ?? [:]).filter
        guard !self.filter.isEmpty || request.all == true else {
            throw .invalid("/selector", "An empty selector means every connection: say all=true if that is meant.")
        }
        guard !self.filter.includesClosed else { throw .invalid("/selector/state", "What is closed cannot be closed.") }
        let reason = Array((request.reason ?? "").utf8)
        guard reason.count <= 123 else { throw .invalid("/reason", "reason must have at most 123 bytes of UTF-8.") }
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

/// Which connections a body means: the filters of the list, with values as JSON has them.
struct BulkSelector {
    let filter: ConnectionFilter

    /// - Throws: `ControlProblem` 422 with the place of what cannot be meant.
    init(_ members: [String: JSONValue]) throws(ControlProblem) {
        var pairs: [(name: String, value: String)] = []
        for (name, value) in members.sorted(by: { $0.key < $1.key }) {
            let known = name == "labels" ? "label" : name
            guard ConnectionFilter.parameters.contains(known) else {
                throw .invalid(
                    Self.pointer(name),
                    "A selector has \(ConnectionFilter.parameters.sorted().joined(separator: ", ")).")
            }
            for text in try Self.texts(value, of: known, at: Self.pointer(name)) { pairs.append((known, text)) }
        }
        do throws(ControlProblem) {
            self.filter = try ConnectionFilter(Query(pairs: pairs))
        } catch {
            // What a query calls a parameter is a member here.
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
            var texts: [String] = []
            for value in values { texts += try self.texts(value, of: name, at: pointer) }
            return texts
        case .object(let members):
            guard name == "label" else {
                throw ControlProblem(422, "wrong-type", "\(pointer) must be a value, or a list of values.").at(
                    pointer: pointer)
            }
            var texts: [String] = []
            for (label, value) in members.sorted(by: { $0.key < $1.key }) {
                texts += try self.texts(value, of: name, at: pointer).map { "\(label):\($0)" }
            }
            return texts
        }
    }
}
