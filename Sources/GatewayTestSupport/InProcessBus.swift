import Cluster
import GatewayCore
import Synchronization

/// Connects several gateways in this process as the nodes of one cluster.
package final class InProcessNetwork: Sendable {
    private struct State {
        var handlers: [String: @Sendable (ClusterMessage) async -> [UInt8]] = [:]
        var names: Set<String> = []
        var silent: Set<String> = []
        var leaving: Set<String> = []
        var isAway = false
        var isFrozen = false
        var frozenCallers: [CheckedContinuation<Void, Never>] = []
        var calls: [String] = []
        var kept: [[UInt8]: KeptValue] = [:]
        var reached: [@Sendable () -> Void] = []
    }

    private let state = Mutex(State())

    package init() {}

    /// The bus of a node, which joins.
    package func bus(_ name: String) -> InProcessBus {
        self.state.withLock { _ = $0.names.insert(name) }
        return InProcessBus(name, in: self)
    }

    /// The node's lease ends.
    package func remove(_ name: String) {
        self.state.withLock { _ = $0.names.remove(name) }
    }

    /// The node's lease ends with its next answer, to which comparisons of bans do not count.
    package func removeAfterCall(_ name: String) {
        self.state.withLock { _ = $0.leaving.insert(name) }
    }

    /// The node has a lease again.
    package func restore(_ name: String) {
        self.state.withLock { _ = $0.names.insert(name) }
    }

    /// Calls to a silent node end as if their timeout had passed, after 100 ms at most, so that tests can give other nodes
    /// all the time they need. Announcements do not reach it, and it can neither call nodes nor read what the
    /// server keeps.
    package func setSilent(_ name: String, _ isSilent: Bool) {
        self.state.withLock { state in
            if isSilent { state.silent.insert(name) } else { state.silent.remove(name) }
        }
    }

    /// Whether the server that connects the nodes cannot be reached.
    package var isAway: Bool {
        get { self.state.withLock { $0.isAway } }
        set {
            let reached = self.state.withLock { state in
                state.isAway = newValue
                return newValue ? [] : state.reached
            }
            for call in reached { call() }
        }
    }

    /// Number of values that the server keeps.
    package var keptCount: Int { self.state.withLock { $0.kept.count } }

    /// While frozen, requests for the names of the nodes wait.
    package func setFrozen(_ isFrozen: Bool) {
        let callers = self.state.withLock { state in
            state.isFrozen = isFrozen
            guard !isFrozen else { return [CheckedContinuation<Void, Never>]() }
            defer { state.frozenCallers = [] }
            return state.frozenCallers
        }
        for caller in callers { caller.resume() }
    }

    /// Nodes that were called, in order, also those that are not there. Nodes compare their bans at any time, so these calls
    /// are left out.
    package var calls: [String] { self.state.withLock { $0.calls } }

    /// What the server keeps is lost.
    package func forgetKept() {
        self.state.withLock { $0.kept = [:] }
    }

    // MARK: For the buses

    fileprivate func isSilent(_ name: String) -> Bool { self.state.withLock { $0.silent.contains(name) } }

    fileprivate func keep(_ values: [KeptValue]) throws(ClusterError) {
        try self.state.withLock { (state) throws(ClusterError) in
            guard !state.isAway else { throw .away }
            for value in values where state.kept[value.key].map({ $0.version < value.version }) ?? true {
                state.kept[value.key] = value
            }
        }
    }

    fileprivate var kept: [KeptValue] {
        get throws(ClusterError) {
            try self.state.withLock { (state) throws(ClusterError) in
                guard !state.isAway else { throw .away }
                return Array(state.kept.values)
            }
        }
    }

    fileprivate func serve(
        _ name: String, reached: @escaping @Sendable () -> Void,
        _ handler: @escaping @Sendable (ClusterMessage) async -> [UInt8]
    ) {
        self.state.withLock { state in
            state.handlers[name] = handler
            state.reached.append(reached)
        }
    }

    fileprivate func waitWhileFrozen() async {
        await withCheckedContinuation { caller in
            let isFrozen = self.state.withLock { state in
                if state.isFrozen { state.frozenCallers.append(caller) }
                return state.isFrozen
            }
            if !isFrozen { caller.resume() }
        }
    }

    fileprivate func nodes() throws(ClusterError) -> [NodeRecord] {
        try self.state.withLock { (state) throws(ClusterError) in
            guard !state.isAway else { throw .away }
            return state.names.sorted().map { name in
                var record = NodeRecord(
                    name: name, instance: "\(name)-1", version: "0.1.0", startTime: 1_790_000_000_000,
                    remainingLease: .seconds(9))
                record.clockDifference = .milliseconds(2)
                record.load.connections = 3
                record.load.processorShare = 0.25
                return record
            }
        }
    }

    /// - Returns: `nil` for a silent node.
    fileprivate func handler(
        of name: String, for message: [UInt8]
    ) throws(ClusterError) -> (@Sendable (ClusterMessage) async -> [UInt8])? {
        let subject = message.first.flatMap(GatewayCluster.Subject.init)
        let isOfRestrictions = subject == .restrictions || subject == .restricted
        return try self.state.withLock { (state) throws(ClusterError) in
            guard !state.isAway else { throw .away }
            if !isOfRestrictions { state.calls.append(name) }
            guard state.names.contains(name) else { throw .unknownNode(name) }
            if !isOfRestrictions, state.leaving.remove(name) != nil { state.names.remove(name) }
            return state.silent.contains(name) ? nil : state.handlers[name]
        }
    }
}

/// The bus of one node in an `InProcessNetwork`.
package final class InProcessBus: ClusterBus {
    package let nodeName: String
    private let network: InProcessNetwork

    fileprivate init(_ name: String, in network: InProcessNetwork) {
        self.nodeName = name
        self.network = network
    }

    package func nodes() async throws(ClusterError) -> [NodeRecord] {
        await self.network.waitWhileFrozen()
        return try self.network.nodes()
    }

    package func call(
        _ node: String, _ message: [UInt8], timeout: Duration
    ) async throws(ClusterError) -> [UInt8] {
        guard !self.network.isSilent(self.nodeName) else { throw .away }
        let handler = try self.network.handler(of: node, for: message)
        let message = ClusterMessage(sender: self.nodeName, isAnnouncement: false, bytes: message)
        let answer = await withTaskGroup(of: [UInt8]?.self) { group in
            if let handler { group.addTask { await handler(message) } }
            group.addTask {
                try? await Task.sleep(for: handler == nil ? min(timeout, .milliseconds(100)) : timeout)
                return nil
            }
            let first = await group.next() ?? nil
            group.cancelAll()
            return first
        }
        guard let answer else { throw .timeout(node: node) }
        return answer
    }

    package func announce(_ message: [UInt8]) async throws(ClusterError) {
        let message = ClusterMessage(sender: self.nodeName, isAnnouncement: true, bytes: message)
        for node in try self.network.nodes() where node.name != self.nodeName {
            guard let handler = try self.network.handler(of: node.name, for: message.bytes) else { continue }
            _ = await handler(message)
        }
    }

    package func keep(
        _ values: [KeptValue], now: Int64, latest: Int64, limit: Int
    ) async throws(ClusterError) {
        try self.network.keep(values)
    }

    package func kept(limit: Int) async throws(ClusterError) -> [[UInt8]] {
        guard !self.network.isSilent(self.nodeName) else { throw .away }
        return try self.network.kept.map(\.bytes)
    }

    package func serve(
        reached: @escaping @Sendable () -> Void, _ handler: @escaping @Sendable (ClusterMessage) async -> [UInt8]
    ) {
        self.network.serve(self.nodeName, reached: reached, handler)
    }
}
