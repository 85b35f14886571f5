import StreamTransport
import WebSocketProtocol

/// What the control plane shows of a task beside its record, and what it does to one, on the loop.
extension WebSocketTask {
    /// Where the connection is in its life.
    package var stage: TaskStage {
        switch self.phase {
        case .opening: .opening
        case .open: .open
        case .closing, .draining: .closing
        case .ended: .closed
        }
    }

    /// Whether messages are passed on instead of queued for `receive`.
    package var isRelayed: Bool {
        self.relay != nil
    }

    package var usesDeflate: Bool {
        self.share != nil
    }

    /// Messages and pings that wait here for their turn.
    package var waitingMessages: Int {
        self.queuesIfMade?.outgoing.waitingCount ?? 0
    }

    /// Bytes for the peer that the transport was not given yet: of messages that wait here for their turn, and what a
    /// relay keeps.
    package var waitingBytes: Int {
        (self.queuesIfMade?.outgoing.waitingBytes ?? 0) + (self.relay?.heldBytes ?? 0)
    }

    /// Messages that came and that nobody has asked for.
    package var unreadMessages: Int {
        self.queuesIfMade?.inbox.messageCount ?? 0
    }

    package var unreadBytes: Int {
        self.queuesIfMade?.inbox.bytes ?? 0
    }
}

extension WebSocketTask {
    /// How the connection ended or is ending, and what was agreed on in the opening handshake.
    package struct Facts: Sendable, Hashable {
        package let closeCode: CloseCode?
        package let closeReason: [UInt8]?
        package let subprotocol: String?
        package let responseStatus: Int?
    }

    /// From any thread.
    package var facts: Facts {
        self.published {
            Facts(
                closeCode: $0.closeCode, closeReason: $0.closeReason, subprotocol: $0.subprotocol,
                responseStatus: $0.response?.status)
        }
    }
}
