import DequeModule
import GatewayConfiguration
import SessionTasks
import StreamTransport
import WebSocketProtocol
import WireText

/// Snapshot of one connection for the REST interface. Made on its loop; counters are read from the task's
/// record when they are shown.
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
    /// Properties of the record besides its counters.
    package var details: TaskRecord.Details?
    package var listener: String?
    package var route: String?
    /// The upstream's name, which is its URL where the route names that itself.
    package var upstream: String?
    /// The URL of the endpoint that was chosen.
    package var endpoint: String?
    /// Requested URL of a connection opened through the control plane.
    package var url: String?
    package var peer: SocketAddress?
    /// Source of a trusted PROXY header, if it differs from the peer.
    package var client: SocketAddress?
    /// Name of the client's user.
    package var user: String?
    package var partner: ConnectionKey?
    package var queuedSendBytes = 0
    package var queuedReceiveBytes = 0
    package var unreadMessages = 0
    package var receiveStalled = Duration.zero
    package var sendStalled = Duration.zero
    /// Whether bytes received from the peer, or to be sent to it, cannot progress.
    package var isStalled = false
    package var isSuspended = false
    package var isInputClosed = false
    package var isOutputClosed = false
    /// Whether its bytes are relayed: to a tunnel's other side, echo, or a chat room.
    package var isRelayed = false
    package var roundTrips: RoundTrips?
    package var usesDeflate = false
    /// On the wire, frame headers included and after compression.
    package var writtenBytes: UInt64 = 0
    package var metadata: WebSocketTask.Metadata?
    package var handshake: HandshakeMetadata?
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
    /// Adds the task's own properties.
    mutating func read(_ endpoint: RelayEndpoint) {
        let task = endpoint.task
        self.read(task.record)
        self.stage = task.stage
        self.queuedSendBytes = task.queuedBytes + task.waitingBytes
        self.isRelayed = task.isRelayed
        self.isSuspended = task.isSuspended
        self.writtenBytes = task.writtenBytes
        switch endpoint {
        case .stream(let task):
            self.isInputClosed = task.isInputClosed
            self.isOutputClosed = task.isOutputClosed
        case .webSocket(let task):
            self.queuedReceiveBytes = task.unreadBytes
            self.unreadMessages = task.unreadMessages
            self.roundTrips = task.roundTrips
            self.usesDeflate = task.compresses
            self.metadata = task.metadata
        }
        let stall = task.outputStall
        self.sendStalled = stall.total(at: self.takenAt)
        // A relay records its stalls itself: it pauses reading one side when the other side's queue is above its watermark.
        if !self.isRelayed, stall.since != nil { self.isStalled = true }
    }

    /// Adds the properties that all tasks have.
    mutating func read(_ record: TaskRecord) {
        let details = record.currentDetails
        self.record = record
        self.details = details
        self.peer = self.peer ?? details.peerAddress
        self.receiveStalled = details.stalled(at: self.takenAt)
        self.isStalled = record.isStalled
    }
}

/// Key of one connection in the REST interface: `17` for an accepted or requested connection, `17u` for the upstream
/// connection of tunnel `17`. Unique in the process.
package struct ConnectionKey: Hashable, Sendable, Comparable {
    /// Also appears in the log.
    package let number: UInt64
    package let side: TunnelSide

    package init(_ number: UInt64, _ side: TunnelSide = .downstream) {
        self.number = number
        self.side = side
    }

    /// Parses `description`; `nil` for anything else.
    package init?(_ text: some StringProtocol) {
        let bytes = Array(text.utf8.prefix(22))
        let isUpstream = bytes.last == UInt8(ascii: "u")
        let digits = isUpstream ? bytes.dropLast() : bytes[...]
        guard (1...20).contains(digits.count), digits.first != UInt8(ascii: "0"),
            digits.allSatisfy({ (0x30...0x39).contains($0) }),
            let number = UInt64(String(decoding: digits, as: UTF8.self))
        else { return nil }
        self.init(number, isUpstream ? .upstream : .downstream)
    }

    package static func < (left: ConnectionKey, right: ConnectionKey) -> Bool {
        if left.number != right.number { return left.number < right.number }
        return left.side == .downstream && right.side == .upstream
    }
}

extension ConnectionKey: CustomStringConvertible {
    package var description: String {
        self.side == .downstream ? "\(self.number)" : "\(self.number)u"
    }
}

/// Protocol carried by a connection.
package enum ConnectionKind: String, CaseIterable, Sendable {
    case stream
    case webSocket
    /// Plain requests and responses, accepted only.
    case http
}

extension ListenerKind {
    /// Kind of the connections that the listener accepts.
    var connectionKind: ConnectionKind {
        self.speaksWebSocket ? .webSocket : .stream
    }
}

/// The opening handshake of a WebSocket as sent and received, in one block of memory, without credentials.
package struct HandshakeMetadata: Sendable, Hashable {
    /// One head: its first line, and its fields.
    package struct Head: Sendable, Hashable {
        package let firstLine: String
        package let fields: [Field]
    }

    package struct Field: Sendable, Hashable {
        package let name: String
        package let value: String
    }

    /// Bytes kept of both heads together; longer ones are cut.
    static let limit = 8 << 10

    private let text: [UInt8]

    init(_ request: RequestHead, response: [UInt8]) {
        let target = CredentialName.hidingCredentials(inTarget: request.target)
        var text = Array("\(request.method) \(target) HTTP/1.1\r\n".utf8)
        for field in request.fields.all {
            let value = CredentialName.matches(field.name) ? CredentialName.hiddenValue : field.value
            text += Array("\(field.name): \(value)\r\n".utf8)
        }
        text += Array("\r\n".utf8) + response
        self.text = Array(text.prefix(Self.limit))
    }

    /// The client's request and the server's response.
    package var messageHeads: (request: Head, response: Head) {
        let lines = self.text.split(separator: 0x0A, omittingEmptySubsequences: false).map { line in
            line.last == 0x0D ? line.dropLast() : line
        }
        let end = lines.firstIndex(where: \.isEmpty) ?? lines.count
        return (Self.head(lines[..<end]), Self.head(lines[min(end + 1, lines.count)...]))
    }

    private static func head(_ lines: ArraySlice<ArraySlice<UInt8>>) -> Head {
        let fields = lines.dropFirst().compactMap { line -> Field? in
            guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { return nil }
            let value = line[(colon + 1)...].drop { $0 == 0x20 }
            return Field(
                name: String(decoding: line[..<colon], as: UTF8.self), value: String(decoding: value, as: UTF8.self))
        }
        return Head(firstLine: String(decoding: lines.first ?? [], as: UTF8.self), fields: fields)
    }
}

/// How a connection ended.
package struct ClosingRecord: Sendable {
    package let at: MonotonicInstant
    package let reason: TerminationReason
    /// Description, if any.
    package let detail: String?

    package init(at: MonotonicInstant, reason: TerminationReason, detail: String? = nil) {
        self.at = at
        self.reason = reason
        self.detail = detail
    }
}

/// The last closed connections of one loop. Bounded: the oldest is dropped.
struct ClosedConnections {
    /// 0 remembers none.
    let limit: Int
    private(set) var reports: Deque<ConnectionReport> = []

    init(limit: Int) {
        self.limit = limit
    }

    mutating func append(_ report: ConnectionReport) {
        guard self.limit > 0 else { return }
        if self.reports.count >= self.limit { self.reports.removeFirst() }
        self.reports.append(report)
    }

    func report(_ key: ConnectionKey) -> ConnectionReport? {
        // Most queries for closed connections follow soon after the end.
        self.reports.last { $0.key == key }
    }
}
