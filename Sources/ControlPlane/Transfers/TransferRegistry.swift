import Foundation
import GatewayConfiguration
import GatewayCore
import NIOPosix
import StreamTransport
import Synchronization
import URLLoading

/// All transfers. Bounded: the ended transfers that were created first are dropped.
final class TransferRegistry: Sendable {
    private struct State {
        var transfers: [UInt64: RunningTransfer] = [:]
        var last: UInt64 = 0
        /// Shared by transfers with `TransferPlan.canShareSession`.
        var session: URLSession?
        var isStopped = false
    }

    let memory = TransferMemory()
    let targets: TransferTargets
    private let sessions = SessionTracker()
    let eventLog: EventLog?
    /// Carries out transfers with `TransferPlan.runsInBackground`; `nil` if none may.
    private let backgroundSession = Mutex<BackgroundTransferSession?>(nil)
    private let clock: @Sendable () -> MonotonicInstant
    private let state = Mutex(State())

    init(targets: TransferTargets, eventLog: EventLog?, clock: @escaping @Sendable () -> MonotonicInstant) {
        self.targets = targets
        self.eventLog = eventLog
        self.clock = clock
    }

    var now: MonotonicInstant { self.clock() }

    // MARK: Sessions

    /// Sessions have no cookies, credentials or cache, so that transfers are isolated from each other.
    func session(for plan: TransferPlan) -> URLSession {
        if plan.runsInBackground, let background { return background.session }
        guard plan.canShareSession else { return self.sessions.make(self.configuration(plan.authorities)) }
        return self.state.withLock { state in
            if let session = state.session { return session }
            let session = self.sessions.make(self.configuration())
            state.session = session
            return session
        }
    }

    /// Drops pooled connections, and has the daemon permit these targets only.
    func targetsChanged(_ rules: TargetRules, _ failed: @escaping @Sendable (URLError) -> Void) {
        let session = self.state.withLock { $0.session.take() }
        session?.finishTasksAndInvalidate()
        guard let background else { return }
        // Waits for the daemon.
        NIOThreadPool.singleton.submit { _ in
            if let error = background.session.permit(rules.texts) { failed(error) }
        }
    }

    private func configuration(_ authorities: [UInt8]? = nil) -> URLSessionConfiguration {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.httpCookieStorage = nil
        configuration.httpShouldSetCookies = false
        configuration.urlCredentialStorage = nil
        configuration.urlCache = nil
        configuration.connectionProxyDictionary = [:]
        // Each transfer has its own timeout.
        configuration.timeoutIntervalForResource = 366 * 86_400
        configuration.certificateAuthorities = authorities.map { Data($0) }
        configuration.permitsAddress = { [admits = self.targets.admits] in admits($0.socketAddress, $1) }
        return configuration
    }

    // MARK: Background

    var background: BackgroundTransferSession? { self.backgroundSession.withLock { $0 } }

    /// Takes over the transfers that run in the daemon. Waits for the daemon, up to 25 s.
    /// - Parameters:
    ///   - name: `TransferSettings.background`.
    ///   - settings: where files may be.
    /// - Returns: why there are none; the daemon is tried again with each new one.
    func startBackground(_ name: String, _ settings: TransferSettings, _ rules: TargetRules) -> URLError? {
        let background = BackgroundTransferSession(name, on: self, settings: settings, rules: rules)
        self.backgroundSession.withLock { $0 = background }
        background.restoreAll()
        return background.session.permit(rules.texts)
    }

    /// Adds a transfer that an earlier gateway created, under its id unless a later transfer has it already.
    func restore(
        _ record: BackgroundTransferRecord, _ task: URLSessionTask, settings: TransferSettings
    ) -> RunningTransfer {
        self.state.withLock { state in
            let number = state.transfers[record.number] == nil ? record.number : state.last + 1
            state.last = max(state.last, number)
            let transfer = RunningTransfer(number: number, restoring: record, task, settings: settings, on: self)
            state.transfers[number] = transfer
            return transfer
        }
    }

    // MARK: Transfers

    /// - Throws: `ControlProblem` 429 at the limit of transfers or memory.
    func add(_ plan: TransferPlan, settings: TransferSettings) throws(ControlProblem) -> RunningTransfer {
        guard self.memory.reserve(plan.bodyBytesInMemory, limit: settings.maximumMemory) else {
            throw ControlProblem(429, "memory-full", "The memory limit of transfers is reached; try again later.")
                .retryable(after: 1)
        }
        var removed: [RunningTransfer] = []
        let transfer = self.state.withLock { state -> RunningTransfer? in
            let ended = state.transfers.filter { $0.value.stage.isOver }.keys.sorted()
            let running = state.transfers.count - ended.count
            guard !state.isStopped, running < settings.maximumRunning else { return nil }
            let excess = state.transfers.count + 1 - settings.maximumTransfers
            guard ended.count >= excess else { return nil }
            removed = ended.prefix(max(0, excess)).compactMap { state.transfers.removeValue(forKey: $0) }
            state.last += 1
            let transfer = RunningTransfer(plan, number: state.last, on: self)
            state.transfers[state.last] = transfer
            return transfer
        }
        for transfer in removed { transfer.forget() }
        guard let transfer else {
            self.memory.release(plan.bodyBytesInMemory)
            throw Self.tooMany
        }
        return transfer
    }

    /// - Throws: `ControlProblem` 429 at the limit of running transfers.
    func checkCapacity(_ settings: TransferSettings) throws(ControlProblem) {
        let running = self.all.filter { !$0.stage.isOver }.count
        guard running < settings.maximumRunning else { throw Self.tooMany }
    }

    private static let tooMany = ControlProblem(
        429, "too-many-transfers", "The limit of running transfers is reached; wait for one to end, or cancel one."
    ).retryable(after: 1)

    func find(_ name: String) -> RunningTransfer? {
        guard let number = UInt64(name), "\(number)" == name else { return nil }
        return self.state.withLock { $0.transfers[number] }
    }

    /// Sorted by number.
    var all: [RunningTransfer] {
        self.state.withLock { $0.transfers.values.sorted { $0.number < $1.number } }
    }

    /// Cancels a transfer and removes it.
    func remove(_ transfer: RunningTransfer) {
        let removed = self.state.withLock { $0.transfers.removeValue(forKey: transfer.number) }
        removed?.forget()
    }

    /// Cancels and removes all transfers but those that the daemon carries out, and waits until their temporary files are
    /// deleted.
    func stop(within timeout: Duration) async {
        let (transfers, session) = self.state.withLock { state in
            state.isStopped = true
            defer { (state.transfers, state.session) = ([:], nil) }
            return (Array(state.transfers.values), state.session)
        }
        // First: a message that no transfer takes any more must not be acknowledged.
        self.backgroundSession.withLock { $0.take() }?.session.detach()
        for transfer in transfers { transfer.stop() }
        session?.invalidateAndCancel()
        _ = await Waiting.forCallback(within: timeout) { self.sessions.notifyWhenEmpty($0) }
    }
}

/// Accounts for the bytes that all transfers hold in memory.
final class TransferMemory: Sendable {
    private let bytes = Mutex(0)

    /// - Returns: `false` if the total would exceed `limit`; nothing is reserved then.
    func reserve(_ count: Int, limit: Int) -> Bool {
        self.bytes.withLock { bytes in
            guard bytes + count <= limit else { return false }
            bytes += count
            return true
        }
    }

    func release(_ count: Int) {
        self.bytes.withLock { $0 = max(0, $0 - count) }
    }
}

/// Counts the sessions that are not yet invalidated, as the delegate of each.
private final class SessionTracker: NSObject, URLSessionDelegate, Sendable {
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

    /// Calls `work` when all sessions are invalidated: all tasks have ended and their temporary files are deleted.
    func notifyWhenEmpty(_ work: @escaping @Sendable () -> Void) {
        let isNone = self.state.withLock { state in
            if state.count > 0 { state.waiting.append(work) }
            return state.count == 0
        }
        if isNone { work() }
    }
}

/// The targets to which transfers may connect; the same as for connections.
struct TransferTargets: Sendable {
    /// Whether a connection to an address is allowed on behalf of a host.
    let admits: @Sendable (SocketAddress, _ host: String) -> Bool

    /// - Parameter rules: evaluated for each address, as the configuration can change.
    init(_ rules: @escaping @Sendable () -> TargetRules) {
        self.admits = { address, host in rules().allows(address, onBehalfOf: host) }
    }

    /// The problem for a URL with an IP literal that is not allowed. Names are checked after their resolution.
    func refusal(of url: URL) -> ControlProblem? {
        let defaultPort: UInt16 = url.scheme?.lowercased() == "https" ? 443 : 80
        let (host, port) = (url.host ?? "", url.port.flatMap { UInt16(exactly: $0) } ?? defaultPort)
        let literal = host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host
        guard let address = SocketAddress(literal: literal, port: port), !self.admits(address, literal) else {
            return nil
        }
        return .targetNotAllowed("\(address)")
    }
}
