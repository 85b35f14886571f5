import SessionTasks
import WebSocketProtocol

/// Something that happened to the gateway, numbered in the order in which it was noted.
package struct GatewayEvent: Sendable {
    package enum Kind: String, CaseIterable, Sendable {
        case opened, closed
        /// A connection became a WebSocket, or secure.
        case upgraded
        /// A limit refused connections; at most one such event a second for each limit.
        case limitHit
        case upstreamDown, upstreamUp
        case reloaded, reloadFailed
        case drainStarted, drainProgressed, drainEnded
        /// An attempt at a transfer began; it came to its end, or was cancelled; it failed.
        case transferStarted, transferEnded, transferFailed
    }

    /// From 1 up, without gaps.
    package internal(set) var number: UInt64 = 0
    /// Milliseconds since 1970-01-01T00:00:00Z.
    package internal(set) var at: Int64 = 0
    package let kind: Kind
    package var connection: ConnectionKey?
    package var listener: String?
    package var route: String?
    /// The upstream's name; what was asked for upstream, of a tunnel that was opened by command.
    package var upstream: String?
    /// The URL of the upstream's endpoint.
    package var endpoint: String?
    package var url: String?
    package var peer: String?
    /// Why it closed; which limit; to what it was upgraded; how a transfer ended.
    package var reason: String?
    package var detail: String?
    /// Of a connection that closed: the code and the reason of its first Close frame.
    package var closeCode: UInt16?
    package var closeReason: String?
    /// Of a connection that closed: payload both ways.
    package var receivedBytes: UInt64?
    package var sentBytes: UInt64?
    package var labels: [String: String] = [:]
    /// How many were refused, or are told to end; which attempt of a transfer.
    package var count: Int?
    /// The drain that it belongs to.
    package var drain: String?
    /// The transfer that it is about.
    package var transfer: String?

    package init(_ kind: Kind) {
        self.kind = kind
    }

    /// Adds what is known of a connection that closed.
    mutating func add(_ report: ConnectionReport) {
        self.closeCode = report.facts?.closeCode?.rawValue
        self.closeReason = report.facts?.closeReason.map { String(decoding: $0, as: UTF8.self) }
        self.receivedBytes = report.record?.bytesReceived ?? 0
        self.sentBytes = report.record?.bytesSent ?? 0
        self.labels = report.labels
    }
}
