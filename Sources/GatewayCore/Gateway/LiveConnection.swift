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
    func endpoint(on side: TunnelSide) -> RelayEndpoint?
    /// Appends the reports of this connection; of a tunnel, both.
    func report(at now: MonotonicInstant, to reports: inout [ConnectionReport])
}

extension LiveConnection {
    var identifier: UInt64 { self.context.identifier }

    func stop(_ signal: CloseSignal) { self.abandon(.operator, .stopped) }
    func endpoint(on side: TunnelSide) -> RelayEndpoint? { nil }
}

/// A connection with one task.
protocol TaskSession: LiveConnection {
    /// `nil` once it has ended.
    var endpoint: RelayEndpoint? { get }
    /// Set when the gateway initiated the end.
    var termination: TerminationReason? { get set }
}

extension TaskSession {
    var kind: ConnectionKind { self.endpoint?.webSocket == nil ? .stream : .webSocket }
    var queuedBytes: Int { self.endpoint?.queuedBytes ?? 0 }
    var phase: TerminationPhase { self.context.openedAt == nil ? .connecting : .relaying }

    func endpoint(on side: TunnelSide) -> RelayEndpoint? {
        side == .downstream ? self.endpoint : nil
    }

    /// Records why the gateway ends the connection; the first cause counts.
    func recordTermination(_ cause: TerminationCause, by party: TerminationParty = .operator) {
        self.termination = self.termination ?? TerminationReason(party, self.phase, cause)
    }

    /// Begins the closing handshake of a WebSocket, or ends a stream.
    func close(_ signal: CloseSignal, stream end: (StreamTask) -> Void) {
        switch self.endpoint {
        case .webSocket(let task): task.close(signal.closeCode, reason: signal.reason)
        case .stream(let task): end(task)
        case nil: break
        }
    }
}
