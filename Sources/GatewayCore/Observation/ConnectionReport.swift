import SessionTasks
import StreamTransport

/// One connection as it was at one moment: everything that REST shows of it. Made on its loop; counters are read off the
/// task's record when they are shown.
package struct ConnectionReport: Sendable {
    package let key: ConnectionKey
    package let kind: ConnectionKind
    package var stage: TaskStage
    /// Accepted by a listener, or opened by the gateway.
    package let isAccepted: Bool
    package let createdAt: MonotonicInstant
    package let takenAt: MonotonicInstant
    /// `nil` before its task was made: the connection is still in its handshake.
    package var record: TaskRecord?
    /// What the record told beside its counters.
    package var details: TaskRecord.Details?
    package var listener: String?
    package var route: String?
    /// The upstream's name, which is its URL where the route names that itself.
    package var upstream: String?
    /// The URL of the endpoint that was chosen.
    package var endpoint: String?
    /// What was asked for, of a connection that was opened by command.
    package var url: String?
    package var peer: SocketAddress?
    /// Whom a trusted PROXY header named, where that is another than the peer.
    package var client: SocketAddress?
    package var partner: ConnectionKey?
    package var queuedSendBytes = 0
    package var queuedReceiveBytes = 0
    package var unreadMessages = 0
    package var receiveStalled = Duration.zero
    package var sendStalled = Duration.zero
    /// Whether what came of the peer, or is to go to it, has nowhere to go just now.
    package var isStalled = false
    package var isSuspended = false
    package var isInputClosed = false
    package var isOutputClosed = false
    /// Its bytes are passed on: to its tunnel's other side, to echo, to a chat room.
    package var isRelayed = false
    package var roundTrips: RoundTrips?
    package var usesDeflate = false
    /// On the wire, frame headers included and after compression.
    package var writtenBytes: UInt64 = 0
    package var facts: WebSocketTask.Facts?
    package var handshake: HandshakeFacts?
    package var labels: [String: String] = [:]
    package var closing: ClosingRecord?

    package init(
        _ key: ConnectionKey, _ kind: ConnectionKind, isAccepted: Bool, stage: TaskStage, createdAt: MonotonicInstant,
        takenAt: MonotonicInstant
    ) {
        self.key = key
        self.kind = kind
        self.isAccepted = isAccepted
        self.stage = stage
        self.createdAt = createdAt
        self.takenAt = takenAt
    }
}

extension ConnectionReport {
    /// What the task itself tells.
    mutating func read(_ link: TunnelLink) {
        switch link {
        case .stream(let task): self.read(task)
        case .webSocket(let task): self.read(task)
        }
        let stall = link.outputStall
        self.sendStalled = stall.total(at: self.takenAt)
        // Who relays watches both sides, and stops reading one long before the other takes nothing more.
        if !self.isRelayed, stall.since != nil { self.isStalled = true }
    }

    private mutating func read(_ record: TaskRecord) {
        let details = record.currentDetails
        self.record = record
        self.details = details
        self.peer = self.peer ?? details.peerAddress
        self.receiveStalled = details.stalled(at: self.takenAt)
        self.isStalled = record.isStalled
    }

    private mutating func read(_ task: StreamTask) {
        self.read(task.record)
        self.stage = task.stage
        self.queuedSendBytes = task.queuedBytes + task.waitingBytes
        self.isInputClosed = task.isInputClosed
        self.isOutputClosed = task.isOutputClosed
        self.isRelayed = task.isRelayed
        self.isSuspended = task.record.state == .suspended
        self.writtenBytes = task.writtenBytes
    }

    private mutating func read(_ task: WebSocketTask) {
        self.read(task.record)
        self.stage = task.stage
        self.queuedSendBytes = task.queuedBytes + task.waitingBytes
        self.queuedReceiveBytes = task.unreadBytes
        self.unreadMessages = task.unreadMessages
        self.isRelayed = task.isRelayed
        self.isSuspended = task.isSuspended
        self.roundTrips = task.roundTrips
        self.usesDeflate = task.usesDeflate
        self.writtenBytes = task.writtenBytes
        self.facts = task.facts
    }
}
