import Foundation
import TLSEngine
import WebSocketProtocol

/// One event as a line of JSON. Times are RFC 3339, durations milliseconds, bytes base64.
struct EventRecord: Encodable {
    struct TLS: Encodable {
        let version: String
        let cipher: String
        let applicationProtocol: String?
        let serverName: String?
        let resumed: Bool
    }

    var event: String
    var at = Date()
    var url: String?
    var peerAddress: String?
    var localAddress: String?
    var tls: TLS?
    var status: Int?
    var subprotocol: String?
    var extensions: String?
    var text: String?
    var data: Data?
    var roundTripMs: Double?
    var by: String?
    var code: UInt16?
    var reason: String?
    var receivedBytes: UInt64?
    var sentBytes: UInt64?
    /// The kind of a failure, its text, and what to try.
    var kind: String?
    var detail: String?
    var remedy: String?

    init(_ event: ConnectEvent) {
        switch event {
        case .connecting(let url): self.init(event: "connecting", url: url)
        case .opened(let facts): self.init(facts)
        case .text(let text): self.init(event: "text", text: text)
        case .data(let bytes): self.init(event: "data", data: Data(bytes))
        case .bytes(let bytes): self.init(event: "bytes", data: Data(bytes))
        case .line(let line): self.init(line: line)
        case .pong(let payload, let time):
            self.init(event: "pong", text: payload, roundTripMs: EventText.milliseconds(time))
        case .ended: self.init(event: "ended")
        case .closed(let facts) where facts.detachedFrom != nil:
            self.init(event: "detached", receivedBytes: facts.bytesReceived, sentBytes: facts.bytesSent)
        case .closed(let facts):
            self.init(
                event: "closed", by: facts.by.rawValue, code: facts.code,
                reason: facts.reason.isEmpty ? nil : facts.reason, receivedBytes: facts.bytesReceived,
                sentBytes: facts.bytesSent)
        case .failed(let failure):
            self.init(
                event: "failed", status: failure.status, kind: failure.kind.rawValue, detail: failure.text,
                remedy: failure.remedy.isEmpty ? nil : failure.remedy)
        }
    }

    private init(
        event: String, url: String? = nil, status: Int? = nil, text: String? = nil, data: Data? = nil,
        roundTripMs: Double? = nil, by: String? = nil, code: UInt16? = nil, reason: String? = nil,
        receivedBytes: UInt64? = nil, sentBytes: UInt64? = nil, kind: String? = nil, detail: String? = nil,
        remedy: String? = nil
    ) {
        self.event = event
        self.url = url
        self.status = status
        self.text = text
        self.data = data
        self.roundTripMs = roundTripMs
        self.by = by
        self.code = code
        self.reason = reason
        self.receivedBytes = receivedBytes
        self.sentBytes = sentBytes
        self.kind = kind
        self.detail = detail
        self.remedy = remedy
    }

    private init(_ facts: ConnectionFacts) {
        self.init(event: "opened", url: facts.url, status: facts.response?.status)
        self.peerAddress = facts.peerAddress
        self.localAddress = facts.localAddress
        self.tls = facts.tls.map {
            TLS(
                version: $0.version.description, cipher: $0.cipherName, applicationProtocol: $0.applicationProtocol,
                serverName: $0.serverName, resumed: $0.resumed)
        }
        self.subprotocol = facts.subprotocol
        self.extensions = facts.extensions
    }

    /// As text if it is that.
    private init(line: [UInt8]) {
        guard let text = String(validating: line, as: UTF8.self) else {
            self.init(event: "line", data: Data(line))
            return
        }
        self.init(event: "line", text: text)
    }

    /// With the end of the line.
    func encoded() throws -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        encoder.dateEncodingStrategy = .custom { date, encoder in
            var container = encoder.singleValueContainer()
            try container.encode(
                date.formatted(
                    .iso8601.year().month().day().time(includingFractionalSeconds: true).timeZone(separator: .omitted)))
        }
        return Array(try encoder.encode(self)) + [0x0A]
    }
}
