import CommandLineText
import Foundation
import SessionTasks
import StreamTransport
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
    var at = Date().formatted(
        .iso8601.year().month().day().time(includingFractionalSeconds: true).timeZone(separator: .omitted))
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
    /// Kind, description and remedy of a failure.
    var kind: String?
    var detail: String?
    var remedy: String?
}

extension EventRecord {
    init(_ event: ConnectEvent) {
        switch event {
        case .connecting(let url): self.init(event: "connecting", url: url)
        case .opened(let metadata): self.init(metadata)
        case .text(let text): self.init(event: "text", text: text)
        case .data(let bytes): self.init(event: "data", data: Data(bytes))
        case .bytes(let bytes): self.init(event: "bytes", data: Data(bytes))
        case .line(let line): self.init(line: line)
        case .pong(let payload, let time):
            self.init(event: "pong", text: payload, roundTripMs: EventText.milliseconds(time))
        case .ended: self.init(event: "ended")
        case .closed(let metadata) where metadata.detachedFrom != nil:
            self.init(event: "detached", receivedBytes: metadata.bytesReceived, sentBytes: metadata.bytesSent)
        case .closed(let metadata):
            self.init(
                event: "closed", by: metadata.by.rawValue, code: metadata.code,
                reason: metadata.reason.isEmpty ? nil : metadata.reason, receivedBytes: metadata.bytesReceived,
                sentBytes: metadata.bytesSent)
        case .failed(let failure):
            self.init(
                event: "failed", status: failure.status, kind: failure.kind.rawValue, detail: failure.text,
                remedy: failure.remedy.isEmpty ? nil : failure.remedy)
        }
    }

    private init(_ metadata: ConnectionMetadata) {
        self.init(event: "opened", url: metadata.url, status: metadata.response?.status)
        self.peerAddress = metadata.peerAddress
        self.localAddress = metadata.localAddress
        self.tls = metadata.tls.map {
            TLS(
                version: $0.version.description, cipher: $0.cipherName, applicationProtocol: $0.applicationProtocol,
                serverName: $0.serverName, resumed: $0.resumed)
        }
        self.subprotocol = metadata.subprotocol
        self.extensions = metadata.extensions
    }

    /// As text if the line is valid UTF-8.
    private init(line: [UInt8]) {
        guard let text = String(validating: line, as: UTF8.self) else {
            self.init(event: "line", data: Data(line))
            return
        }
        self.init(event: "line", text: text)
    }

    /// JSON with a trailing newline.
    func encoded() throws -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return Array(try encoder.encode(self)) + [0x0A]
    }
}

/// Human-readable descriptions of events.
enum EventText {
    /// Sanitized lines about the connection; empty for received data.
    static func notes(_ event: ConnectEvent) -> [String] {
        let lines: [String] =
            switch event {
            case .connecting(let url): ["connecting to \(url)"]
            case .opened(let metadata): metadata.lines
            case .pong(let payload, let time):
                ["pong\(payload.isEmpty ? "" : " \"\(payload)\"") after \(self.milliseconds(time)) ms"]
            case .ended: ["the peer closed its sending side"]
            case .closed(let metadata): [metadata.line]
            case .failed(let failure): [failure.line]
            case .text, .data, .bytes, .line: []
            }
        return lines.map { TerminalText.singleLine($0, limit: 1000) }
    }

    /// Milliseconds with one decimal.
    static func milliseconds(_ duration: Duration) -> Double {
        let (seconds, attoseconds) = duration.components
        let tenths = seconds * 10_000 + attoseconds / 100_000_000_000_000
        return Double(tenths) / 10
    }
}

/// How a connection was closed, and its byte counts.
struct ClosingMetadata: Sendable {
    enum Party: String, Sendable {
        case us, peer
    }

    /// The party that closed first.
    var by: Party
    /// ID of the gateway's connection that was detached and stays open; `nil` if the connection is closed.
    var detachedFrom: String?
    /// Close code of the first Close frame; `nil` on a stream and for a Close frame without a code.
    var code: UInt16?
    var reason = ""
    var bytesReceived: UInt64 = 0
    var bytesSent: UInt64 = 0

    /// One-line summary.
    var line: String {
        if let detachedFrom {
            return "detached from \(detachedFrom), which stays open; \(self.traffic)"
        }
        let code = self.code.map { " with \($0)" } ?? ""
        let who = self.by == .us ? "us" : "the peer"
        let reason = self.reason.isEmpty ? "" : " \"\(self.reason)\""
        return "closed by \(who)\(code)\(reason); \(self.traffic)"
    }

    private var traffic: String { "\(self.bytesReceived) bytes received, \(self.bytesSent) sent" }
}

/// Properties of an open connection.
struct ConnectionMetadata: Sendable {
    var url: String
    var localAddress: String?
    var peerAddress: String?
    var tls: TLSMetadata?
    /// `nil` on a stream.
    var response: ResponseHead?
    var subprotocol: String?

    /// The extensions that the server accepted.
    var extensions: String? { self.response?.fields["Sec-WebSocket-Extensions"] }

    /// A line for each fact.
    var lines: [String] {
        var lines = ["connected to \(self.peerAddress ?? "?") from \(self.localAddress ?? "?")"]
        if let tls {
            let name = tls.serverName.map { " for \($0)" } ?? ""
            let agreed = tls.applicationProtocol.map { ", ALPN \($0)" } ?? ""
            lines.append("\(tls.version)\(name), \(tls.cipherName)\(agreed)")
        }
        if let response {
            lines.append("HTTP/1.1 \(response.status) \(response.reason)")
            lines += response.fields.all.map { "\($0.name): \($0.value)" }
            lines.append("subprotocol \(self.subprotocol ?? "none"), extensions \(self.extensions ?? "none")")
        }
        return lines
    }
}

extension TaskRecord {
    /// Properties of an open connection, from its record.
    func metadata(url: String) -> ConnectionMetadata {
        self.read { details in
            ConnectionMetadata(
                url: url, localAddress: details.localAddress?.description,
                peerAddress: details.peerAddress?.description,
                tls: details.tls)
        }
    }
}
