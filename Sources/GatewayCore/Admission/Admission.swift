import GatewayConfiguration
import StreamTransport

/// Decides which connections the gateway admits, and counts them. Shared by all loops, under a lock.
package struct Admission: Sendable {
    /// Connections open on all listeners together.
    package private(set) var connections = 0
    /// Largest number of connections; above it `.totalLimit`.
    package var totalLimit: Int
    private let clientTableLimit: Int
    private var listeners: [String: ListenerAdmission] = [:]
    package private(set) var isDraining = false
    private var refusing = 0

    /// - Parameter clientTableLimit: different clients counted for each listener, some 40 bytes each; beyond it
    ///   `.clientTableFull`.
    package init(totalLimit: Int, clientTableLimit: Int = 65_536) {
        self.totalLimit = totalLimit
        self.clientTableLimit = clientTableLimit
    }

    package init(_ configuration: Configuration) {
        self.init(totalLimit: configuration.maximumConnections)
        self.reload(configuration)
    }

    /// Replaces limits and listeners. Open connections stay counted, and stay open even above a lowered limit.
    package mutating func reload(_ configuration: Configuration) {
        self.prepare(configuration)
        self.retire(allBut: configuration)
    }

    /// First step of a reload, before the new listeners accept: applies their limits and the total, and keeps the
    /// former listeners.
    package mutating func prepare(_ configuration: Configuration) {
        self.totalLimit = configuration.connectionLimit(DescriptorReserve.process.budget)
        for listener in configuration.listeners {
            var admission = self.listeners[listener.name] ?? ListenerAdmission(listener.limits)
            admission.limits = listener.limits
            admission.isRetired = false
            self.listeners[listener.name] = admission
        }
    }

    /// Last step of a reload, once the former listeners accept nothing more: they are removed with their last
    /// connection.
    package mutating func retire(allBut configuration: Configuration) {
        let names = Set(configuration.listeners.map(\.name))
        for name in Array(self.listeners.keys) where !names.contains(name) {
            self.listeners[name]?.isRetired = true
            self.removeIfUnused(name)
        }
    }

    private mutating func removeIfUnused(_ name: String) {
        guard let admission = self.listeners[name], admission.isRetired, !admission.isInUse else { return }
        self.listeners[name] = nil
    }

    /// A listener accepted a connection whose client is not known yet: `endArrival` follows, before or after `admit`.
    /// Until then the listener is kept.
    package mutating func beginArrival(listener: String) {
        self.listeners[listener]?.arriving += 1
    }

    package mutating func endArrival(listener: String) {
        self.listeners[listener]?.arriving -= 1
        self.removeIfUnused(listener)
    }

    /// Refuses all connections from now on.
    package mutating func beginDrain() {
        self.isDraining = true
    }

    /// Admits a connection.
    ///
    /// - Parameter client: the client's address, from a trusted PROXY header if there is one; `nil` for a Unix socket,
    ///   which has no client limit.
    /// - Returns: why it is refused; `nil` if it is admitted and must be released later.
    package mutating func admit(listener: String, client: IPAddress?, at now: MonotonicInstant) -> AdmissionRefusal? {
        guard !self.isDraining else { return .draining }
        guard self.connections < self.totalLimit else { return .totalLimit }
        let key = client.map { ClientKey($0) }
        // Unknown listener: ours are registered from before they accept until their last connection ends.
        guard let index = self.listeners.index(forKey: listener) else { return .draining }
        let refusal = self.listeners.values[index].admit(key, tableLimit: self.clientTableLimit, at: now)
        if refusal == nil { self.connections += 1 }
        return refusal
    }

    /// Releases an admitted connection, with the arguments of its `admit`.
    package mutating func release(listener: String, client: IPAddress?) {
        guard self.listeners[listener]?.release(client.map { ClientKey($0) }) == true else { return }
        self.connections -= 1
        self.removeIfUnused(listener)
    }

    /// A refused WebSocket client gets its status only after it has sent its request, so until then it costs what an
    /// admitted one does. At most a sixteenth of the total limit (at least 16) may be in that state.
    ///
    /// - Returns: whether this client may wait for its response; if so `endAnswer` follows. Others are reset at once.
    package mutating func beginAnswer() -> Bool {
        guard self.refusing < max(self.totalLimit / 16, 16) else { return false }
        self.refusing += 1
        return true
    }

    package mutating func endAnswer() {
        self.refusing = max(self.refusing - 1, 0)
    }

    /// Connections open on one listener.
    package func connections(listener: String) -> Int {
        self.listeners[listener]?.connections ?? 0
    }

    /// Clients that have connections open on one listener.
    package func clients(listener: String) -> Int {
        self.listeners[listener]?.clients.count ?? 0
    }
}

/// Why a connection was not admitted. The raw value names it in logs and in the counter.
package enum AdmissionRefusal: String, CaseIterable, Sendable {
    /// The listener is not for clients of this address.
    case clientAddress = "client-address"
    /// The gateway is at its connection limit.
    case totalLimit = "total-limit"
    /// The listener is at its connection limit.
    case listenerLimit = "listener-limit"
    /// The client's address (or IPv6 /64) is at its connection limit.
    case clientLimit = "client-limit"
    /// Too many different clients to count: the table is full.
    case clientTableFull = "client-table-full"
    /// The token bucket of the accept rate is empty.
    case acceptRate = "accept-rate"
    /// The gateway is shutting down.
    case draining

    /// The answer to an opening handshake (RFC 6585 §4 for 429). Connections without one are reset.
    package var status: UInt16 {
        switch self {
        case .clientAddress: 403
        case .clientLimit: 429
        case .totalLimit, .listenerLimit, .clientTableFull, .acceptRate, .draining: 503
        }
    }
}

/// Counts one accepted connection in the limits, until it is released.
struct AdmissionPermit {
    private enum State {
        case none
        /// Accepted; the client's address is not known yet.
        case arriving
        case admitted
        /// Refused; the client waits for the response.
        case answering
    }

    private var state = State.none

    /// Admission follows in a later turn, when the client's address is known; a reload may remove the listener
    /// meanwhile.
    mutating func arrive(_ context: ConnectionContext) {
        guard let listener = context.listener else { return }
        context.gateway.shared.withAdmission { $0.beginArrival(listener: listener) }
        self.state = .arriving
    }

    /// Requests admission. The client's address no longer changes.
    /// - Returns: why it was refused; `nil` if admitted.
    mutating func request(_ context: ConnectionContext, _ limits: ListenerLimits) -> AdmissionRefusal? {
        guard let listener = context.listener else { return nil }
        let hadArrived = if case .arriving = self.state { true } else { false }
        let (client, now) = (context.client.ipAddress, context.loop.now)
        let isAllowed = limits.allows(context.client)
        let refusal = context.gateway.shared.withAdmission { admission -> AdmissionRefusal? in
            defer { if hadArrived { admission.endArrival(listener: listener) } }
            guard isAllowed else { return .clientAddress }
            return admission.admit(listener: listener, client: client, at: now)
        }
        self.state = refusal == nil ? .admitted : .none
        return refusal
    }

    /// Requests permission to send a refused client its response, which costs as much as an admitted connection.
    mutating func requestAnswer(_ context: ConnectionContext) -> Bool {
        guard context.gateway.shared.withAdmission({ $0.beginAnswer() }) else { return false }
        self.state = .answering
        return true
    }

    /// Does nothing for a connection that no listener accepted.
    mutating func release(_ context: ConnectionContext) {
        guard let listener = context.listener else { return }
        let client = context.client.ipAddress
        let shared = context.gateway.shared
        switch self.state {
        case .none: return
        case .arriving: shared.withAdmission { $0.endArrival(listener: listener) }
        case .admitted: shared.withAdmission { $0.release(listener: listener, client: client) }
        case .answering: shared.withAdmission { $0.endAnswer() }
        }
        self.state = .none
    }
}

extension ListenerLimits {
    /// Whether `allow-clients` and `deny-clients` let the client connect.
    package func allows(_ client: SocketAddress) -> Bool {
        guard !AddressSet(self.deniedClients).contains(client) else { return false }
        return self.allowedClients.isEmpty || AddressSet(self.allowedClients).contains(client)
    }
}

/// Identifies a client: an IPv4 address, or an IPv6 /64, the usual assignment to one customer (RFC 6177 §2).
package struct ClientKey: Hashable, Sendable {
    private let isIPv4: Bool
    private let bits: UInt64

    init(_ address: IPAddress) {
        switch address.unmapped {
        case .v4(let bits):
            self.isIPv4 = true
            self.bits = UInt64(bits)
        case .v6(let high, _):
            self.isIPv4 = false
            self.bits = high
        }
    }
}

extension Configuration {
    /// The configured connection limit; by default as many as the process has descriptors for.
    package func connectionLimit(_ budget: DescriptorBudget) -> Int {
        guard self.maximumConnections == Self.defaultMaximumConnections else { return self.maximumConnections }
        return min(self.maximumConnections, budget.connections(each: self.descriptorsPerConnection))
    }

    /// Warning for the log if a configured limit needs more descriptors than the process has.
    package func descriptorShortage(_ budget: DescriptorBudget) -> String? {
        let wanted = self.connectionLimit(budget)
        let possible = budget.connections(each: self.descriptorsPerConnection)
        guard wanted > possible else { return nil }
        return
            "max-connections is \(wanted), but the limit of \(budget.limit) descriptors permits \(possible): raise LimitNOFILE"
    }

    /// A tunnel has a socket on each side, and a connection to files a file.
    private var descriptorsPerConnection: Int {
        let hasTunnels = self.routes.contains { route in
            switch route.target {
            // A file being sent is open too.
            case .upstream, .url, .targets, .files: true
            case .echo, .chat, .rooms, .page, .roomEvents: false
            }
        }
        return hasTunnels ? 2 : 1
    }
}

extension ControlSettings {
    /// The configured connection limit; by default as many as the process has descriptors for.
    package func connectionLimit(_ budget: DescriptorBudget) -> Int {
        guard self.maximumConnections == Self.defaultMaximumConnections else { return self.maximumConnections }
        return budget.controlConnections
    }
}
