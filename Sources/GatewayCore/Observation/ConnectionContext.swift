import GatewayConfiguration
import Rooms
import SessionTasks
import StreamTransport
import Synchronization

/// A connection or tunnel from its acceptance, or the request to open it, to its last log line: identity, route,
/// endpoint, admission, deadline. Each owner of the connection passes it to the next. On its loop.
final class ConnectionContext {
    enum Origin {
        /// - Parameter peer: remote address of the connection.
        case accepted(listener: String, peer: SocketAddress)
        /// Opened through the control plane.
        /// - Parameter upstreamURL: requested upstream URL of a tunnel; `nil` for a single connection.
        case requested(url: String, upstreamURL: String?)
    }

    /// Properties that few connections have.
    private struct Rare {
        var client: SocketAddress?
        var destination: SocketAddress?
        var tokenExpiry: Int64?
        var roomMeters: RoomMeters?
        var user: String?
        var countedTraffic: TrafficMetrics?
    }

    /// Unique in the process, from 1 up; appears in both log lines and in the REST interface.
    let identifier: UInt64
    let origin: Origin
    let gateway: LoopGateway
    let createdAt: MonotonicInstant
    /// Deadline of the connection's current owner, which disarms it before it hands the context on.
    private(set) lazy var timer = LoopTimer()
    /// The matched route; `nil` before, and for a requested connection.
    var route: RoutePlan?
    private var rare: Indirect<Rare>?
    /// When payload could flow; `nil` before.
    var openedAt: MonotonicInstant?
    /// Index of the upstream's endpoint that was tried last; `nil` before the first.
    var endpoint: Int32?
    var permit = AdmissionPermit()

    init(_ origin: Origin, on gateway: LoopGateway) {
        self.origin = origin
        self.gateway = gateway
        self.identifier = gateway.nextIdentifier()
        self.createdAt = gateway.loop.now
    }

    var key: ConnectionKey { ConnectionKey(self.identifier) }
    var loop: Loop { self.gateway.loop }
    var routeName: String? { self.route?.configuration.name }

    /// `nil` for a requested connection.
    var listener: String? {
        if case .accepted(let listener, _) = self.origin { listener } else { nil }
    }

    /// The client: the peer, or the source of a trusted PROXY header. The address of an unnamed socket for a requested
    /// connection.
    var client: SocketAddress {
        get {
            if let client = self.rare?.value.client { return client }
            return if case .accepted(_, let peer) = self.origin { peer } else { .unix(path: "") }
        }
        set { self.changeRare { $0.client = newValue } }
    }

    /// Where the client connected to: by the PROXY header if there was one, else our own address, looked up only where
    /// it is passed on.
    var destination: SocketAddress? {
        get { self.rare?.value.destination }
        set { self.changeRare { $0.destination = newValue } }
    }

    /// When the connection has to end with the client's token, in milliseconds since 1970; `nil` for never.
    var tokenExpiry: Int64? {
        get { self.rare?.value.tokenExpiry }
        set { self.changeRare { $0.tokenExpiry = newValue } }
    }

    /// Time until then by the present wall clock.
    var tokenTimeLeft: Duration? {
        self.tokenExpiry.map { .milliseconds($0 - self.loop.system.wallClockMilliseconds()) }
    }

    /// Rates of what requests publish in rooms, where clients cannot be distinguished; `nil` before the first.
    var roomMeters: RoomMeters? {
        get { self.rare?.value.roomMeters }
        set { self.changeRare { $0.roomMeters = newValue } }
    }

    /// Name of the client's user, of plain HTTP in the latest request; `nil` where nothing names one, and for a name above
    /// the limit of the list of users.
    var user: String? {
        get { self.rare?.value.user }
        set {
            let name = newValue.flatMap { (1...UserSelection.nameLimit).contains($0.utf8.count) ? $0 : nil }
            if name != nil || self.user != nil { self.changeRare { $0.user = name } }
        }
    }

    /// Of plain HTTP: what earlier requests transferred, which counts for their routes; `nil` if all had the same route.
    var countedTraffic: TrafficMetrics? {
        get { self.rare?.value.countedTraffic }
        set { if newValue != nil || self.countedTraffic != nil { self.changeRare { $0.countedTraffic = newValue } } }
    }

    private func changeRare(_ change: (inout Rare) -> Void) {
        var rare = self.rare?.value ?? Rare()
        change(&rare)
        self.rare = .value(rare)
    }
}

/// The endpoint that the connection leads to.
extension ConnectionContext {
    /// The upstream of an endpoint that was tried.
    private var triedUpstream: UpstreamPlan? { self.endpoint == nil ? nil : self.route?.upstream }

    /// The upstream's name; `nil` before the first attempt.
    var upstreamName: String? { self.triedUpstream?.configuration.name }

    /// The endpoint's URL; `nil` before the first attempt.
    var endpointURL: String? {
        guard let endpoint = self.endpoint else { return nil }
        return self.triedUpstream?.endpointURLs[Int(endpoint)]
    }

    /// Gives the endpoint's slot in the balancer back.
    func releaseEndpoint() {
        guard let endpoint = self.endpoint else { return }
        self.triedUpstream?.release(Int(endpoint))
    }
}

extension ConnectionContext {
    /// Report of one connection, without its task's properties.
    /// - Parameter side: the tunnel's side; `downstream` for a single connection.
    func report(
        _ kind: ConnectionKind, _ side: TunnelSide = .downstream, stage: TaskStage, at now: MonotonicInstant
    ) -> ConnectionReport {
        let key = ConnectionKey(self.identifier, side)
        switch self.origin {
        case .accepted(let listener, let peer):
            var report = ConnectionReport(
                key, kind, isAccepted: side == .downstream, stage: stage, createdAt: self.createdAt, takenAt: now)
            report.listener = listener
            report.route = self.routeName
            report.upstream = self.upstreamName
            report.endpoint = self.endpointURL
            guard side == .downstream else { return report }
            report.peer = peer
            report.client = self.client == peer ? nil : self.client
            report.user = self.user
            return report
        case .requested(let url, let upstreamURL):
            var report = ConnectionReport(
                key, kind, isAccepted: false, stage: stage, createdAt: self.createdAt, takenAt: now)
            report.url = side == .downstream ? url : upstreamURL
            return report
        }
    }

    /// Appends the reports of both sides of a tunnel.
    func report(
        _ downstream: RelayEndpoint, _ upstream: RelayEndpoint, at now: MonotonicInstant,
        to reports: inout [ConnectionReport]
    ) {
        var first = self.report(downstream.kind.connectionKind, stage: .open, at: now)
        var second = self.report(upstream.kind.connectionKind, .upstream, stage: .open, at: now)
        first.read(downstream)
        second.read(upstream)
        (first.partner, second.partner) = (second.key, first.key)
        // Reading of this side is paused because the other side's output is full: that side is the stalled one.
        (first.sendStalled, second.sendStalled) = (second.receiveStalled, first.receiveStalled)
        reports.append(first)
        reports.append(second)
    }
}

extension SideKind {
    fileprivate var connectionKind: ConnectionKind {
        switch self {
        case .stream: .stream
        case .webSocket: .webSocket
        }
    }
}
