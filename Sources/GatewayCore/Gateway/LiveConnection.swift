import SessionTasks
import StreamTransport

/// A connection or tunnel that the gateway is responsible for, from its beginning to its end. On its loop.
protocol LiveConnection: AnyObject {
    var context: ConnectionContext { get }
    /// Bytes taken from one peer that the kernel has not taken for the other: what its watermarks bound.
    var queuedBytes: Int { get }
    /// Ends in order when it is convenient: 1001 to WebSockets, nothing new begins.
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
    var identifier: UInt64 { self.context.identifier }

    func stop(_ signal: CloseSignal) { self.abandon(.operator, .stopped) }
    func link(_ side: TunnelSide) -> RelayEndpoint? { nil }
}
