import GatewayConfiguration
import SessionTasks
import StreamTransport

/// A connection that the gateway is responsible for, from its acceptance to its end. On its loop.
protocol LiveConnection: AnyObject {
    /// Unique in the process; the `connection` field of log lines and the REST interface.
    var identifier: UInt64 { get }
    var routeName: String? { get }
    /// Bytes taken from one peer that the kernel has not taken for the other: what its watermarks bound.
    var queuedBytes: Int { get }
    /// Asked to end when it is convenient: 1001 to WebSockets, nothing new to begin.
    func drain()
    /// Ends at once, with a reset where that is not a clean end.
    func abandon(_ party: TerminationParty, _ cause: TerminationCause)
    /// Ends in order on request, with this Close frame on a WebSocket.
    func stop(_ signal: CloseSignal)
    /// The task on that side; `nil` while there is none.
    func link(_ side: TunnelSide) -> RelayEndpoint?
    /// Appends the reports of this connection; of a tunnel, both.
    func report(at now: MonotonicInstant, to reports: inout [ConnectionReport])
}

extension LiveConnection {
    func stop(_ signal: CloseSignal) { self.abandon(.operator, .stopped) }
    func link(_ side: TunnelSide) -> RelayEndpoint? { nil }
}

extension ConnectionContext {
    /// Report of an accepted connection, without its task's properties.
    func report(_ kind: ConnectionKind, stage: TaskStage, at now: MonotonicInstant) -> ConnectionReport {
        var report = ConnectionReport(
            ConnectionKey(self.identifier), kind, isAccepted: true, stage: stage, createdAt: self.acceptedAt,
            takenAt: now)
        report.listener = self.listener
        report.route = self.route
        report.upstream = self.upstreamPlan?.configuration.name
        report.endpoint = self.upstream
        report.peer = self.peer
        report.client = self.client == self.peer ? nil : self.client
        return report
    }
}
