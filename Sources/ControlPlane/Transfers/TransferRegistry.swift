import Foundation
import GatewayConfiguration
import GatewayCore
import StreamTransport
import Synchronization
import URLLoading

/// All transfers that are known. Bounded: those that ended first make room.
final class TransferRegistry: Sendable {
    private struct State {
        var transfers: [UInt64: RunningTransfer] = [:]
        var last: UInt64 = 0
        /// For transfers whose connections others may use.
        var session: URLSession?
        var isStopped = false
    }

    let memory = TransferMemory()
    let targets: TransferTargets
    private let sessions = SessionTracker()
    /// Where is told what becomes of them.
    let eventLog: EventLog?
    private let clock: @Sendable () -> MonotonicInstant
    private let state = Mutex(State())

    init(targets: TransferTargets, journal: EventLog? = nil, clock: @escaping @Sendable () -> MonotonicInstant) {
        self.targets = targets
        self.eventLog = journal
        self.clock = clock
    }

    var now: MonotonicInstant { self.clock() }

    // MARK: Sessions

    /// No transfer hears of another's cookies, credentials or kept answers.
    func session(for order: TransferPlan) -> URLSession {
        guard order.canShareSession else { return self.sessions.make(self.configuration(order.authorities)) }
        return self.state.withLock { state in
            if let session = state.session { return session }
            let session = self.sessions.make(self.configuration())
            state.session = session
            return session
        }
    }

    /// Connections that are kept open may lead to where none may be opened any more.
    func dropSharedSession() {
        let session = self.state.withLock { $0.session.take() }
        session?.finishTasksAndInvalidate()
    }

    private func configuration(_ authorities: [UInt8]? = nil) -> URLSessionConfiguration {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.httpCookieStorage = nil
        configuration.httpShouldSetCookies = false
        configuration.urlCredentialStorage = nil
        configuration.urlCache = nil
        configuration.connectionProxyDictionary = [:]
        // Each transfer has a clock of its own.
        configuration.timeoutIntervalForResource = 366 * 86_400
        configuration.certificateAuthorities = authorities.map { Data($0) }
        configuration.permitsAddress = { [admits = self.targets.admits] in admits($0.socketAddress, $1) }
        return configuration
    }

    // MARK: The transfers

    /// - Throws: `ControlProblem` 429 where there are too many, or too much is in memory.
    func add(_ order: TransferPlan, settings: TransferSettings) throws(ControlProblem) -> RunningTransfer {
        guard self.memory.reserve(order.bodyBytesInMemory, limit: settings.maximumMemory) else {
            throw ControlProblem(429, "memory-full", "Other transfers hold as much in memory as may be.")
                .retryable(after: 1)
        }
        var removed: [RunningTransfer] = []
        let transfer = self.state.withLock { state -> RunningTransfer? in
            let alive = state.transfers.values.filter { !$0.stage.isOver }.count
            guard !state.isStopped, alive < settings.maximumRunning else { return nil }
            let excess = state.transfers.count + 1 - settings.maximumTransfers
            let over = state.transfers.filter { $0.value.stage.isOver }.keys.sorted()
            guard over.count >= excess else { return nil }
            for number in over.prefix(max(0, excess)) {
                if let one = state.transfers.removeValue(forKey: number) { removed.append(one) }
            }
            state.last += 1
            let transfer = RunningTransfer(order, number: state.last, on: self)
            state.transfers[state.last] = transfer
            return transfer
        }
        for one in removed { one.forget() }
        guard let transfer else {
            self.memory.release(order.bodyBytesInMemory)
            throw Self.tooMany
        }
        return transfer
    }

    /// - Throws: `ControlProblem` 429 where no other may run.
    func checkCapacity(_ settings: TransferSettings) throws(ControlProblem) {
        let alive = self.all.filter { !$0.stage.isOver }.count
        guard alive < settings.maximumRunning else { throw Self.tooMany }
    }

    private static let tooMany = ControlProblem(
        429, "too-many-transfers", "As many transfers run as may; wait for one to end, or cancel one."
    ).retryable(after: 1)

    func find(_ name: String) -> RunningTransfer? {
        guard let number = UInt64(name), "\(number)" == name else { return nil }
        return self.state.withLock { $0.transfers[number] }
    }

    /// By number.
    var all: [RunningTransfer] {
        self.state.withLock { $0.transfers.values.sorted { $0.number < $1.number } }
    }

    /// Ends it if it runs, and forgets it.
    func remove(_ transfer: RunningTransfer) {
        let removed = self.state.withLock { $0.transfers.removeValue(forKey: transfer.number) }
        removed?.forget()
    }

    /// Ends and forgets all of them, and waits until nothing of them is on the disk.
    /// - Parameter patience: no longer than this.
    func stop(within patience: Duration) async {
        let (transfers, session) = self.state.withLock { state in
            state.isStopped = true
            defer { (state.transfers, state.session) = ([:], nil) }
            return (Array(state.transfers.values), state.session)
        }
        for transfer in transfers { transfer.forget() }
        session?.invalidateAndCancel()
        _ = await Waiting.forCallback(within: patience) { self.sessions.notifyWhenEmpty($0) }
    }
}

/// How much content all transfers hold in memory.
final class TransferMemory: Sendable {
    private let held = Mutex(0)

    /// - Returns: `false` where that would be more than `limit` in all; nothing is taken then.
    func reserve(_ count: Int, limit: Int) -> Bool {
        self.held.withLock { held in
            guard held + count <= limit else { return false }
            held += count
            return true
        }
    }

    func release(_ count: Int) {
        self.held.withLock { $0 = max(0, $0 - count) }
    }
}

/// Counts the sessions that are not invalid yet: the delegate of each, so that whoever ends them can wait for the last.
final class SessionTracker: NSObject, URLSessionDelegate, Sendable {
    private struct State {
        var count = 0
        var waiting: [@Sendable () -> Void] = []
    }

    private let state = Mutex(State())

    func make(_ configuration: URLSessionConfiguration) -> URLSession {
        self.state.withLock { $0.count += 1 }
        return URLSession(configuration: configuration, delegate: self, delegateQueue: nil)
    }

    func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) {
        let waiting = self.state.withLock { state -> [@Sendable () -> Void] in
            state.count -= 1
            guard state.count == 0 else { return [] }
            defer { state.waiting = [] }
            return state.waiting
        }
        for call in waiting { call() }
    }

    /// Calls `work` when none is left: their tasks are over then, and the files of those are gone.
    func notifyWhenEmpty(_ work: @escaping @Sendable () -> Void) {
        let isNone = self.state.withLock { state in
            if state.count > 0 { state.waiting.append(work) }
            return state.count == 0
        }
        if isNone { work() }
    }
}
