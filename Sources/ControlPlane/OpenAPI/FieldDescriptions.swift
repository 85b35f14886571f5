import GatewayConfiguration
import GatewayCore
import SessionTasks

/// Schema members of wire model members that their types do not provide: choices, ranges, formats, descriptions.
enum FieldDescriptions {
    private static func choices<Choice: CaseIterable & RawRepresentable<String>>(_ type: Choice.Type) -> OrderedJSON {
        ["enum": .strings(type.allCases.map(\.rawValue))]
    }

    private static let time: OrderedJSON = ["format": "date-time"]
    private static let milliseconds: OrderedJSON = ["minimum": 0, "description": "milliseconds"]

    private static func range(_ low: Int, _ high: Int, _ description: String? = nil) -> OrderedJSON {
        var schema: OrderedJSON = ["minimum": .integer(low), "maximum": .integer(high)]
        if let description { schema["description"] = .string(description) }
        return schema
    }

    private static func milliseconds(_ range: ClosedRange<Duration>) -> OrderedJSON {
        Self.range(Int(range.milliseconds.lowerBound), Int(range.milliseconds.upperBound))
    }

    private static func text(_ description: String) -> OrderedJSON { ["description": .string(description)] }

    static let all: [String: OrderedJSON] = Self.connections.merging(Self.requests) { first, _ in first }
        .merging(Self.others) { first, _ in first }

    private static let connections: [String: OrderedJSON] = [
        "Connection.kind": Self.choices(ConnectionKind.self),
        "Connection.direction": ["enum": ["accepted", "opened"]],
        "Connection.state": Self.choices(TaskStage.self),
        "Connection.taskState": ["enum": ["suspended", "running", "canceling", "completed"]],
        "Connection.priority": Self.range(0, 1),
        "Connection.id": Self.text("Unique; the upstream side of tunnel 17 has the id 17u."),
        "Connection.createdAt": Self.time, "Connection.openedAt": Self.time, "Connection.lastActivityAt": Self.time,
        "Connection.closedAt": Self.time, "Connection.ageMs": Self.milliseconds, "Connection.idleMs": Self.milliseconds,
        "Connection.receiveStalledMs": Self.milliseconds, "Connection.sendStalledMs": Self.milliseconds,
        "Connection.closeCode": Self.range(0, 65535, "RFC 6455 §7.4; 1005 for a Close without a code"),
        "Connection.terminationReason": Self.text("Party, phase and cause of the end."),
        "ConnectionPage.next": Self.text("Path and query of the next page; missing on the last page."),
    ]

    private static let requests: [String: OrderedJSON] = [
        "OpenRequest.url": ["format": "uri", "description": "ws://, wss://, tcp://, tls:// or unix://"],
        "OpenRequest.maximumMessageSizeBytes": Self.range(1, 268_435_456, "Default: 1 MiB"),
        "OpenRequest.maximumMessageSize": Self.range(1, 268_435_456, "Synonym of maximumMessageSizeBytes"),
        "OpenRequest.pingIntervalMs": Self.range(0, 86_400_000, "0: no pings; otherwise at least 100"),
        "OpenRequest.pongTimeoutMs": Self.range(100, 86_400_000),
        "OpenRequest.connectTimeoutMs": Self.range(1, 600_000),
        "OpenRequest.handshakeTimeoutMs": Self.range(1, 600_000),
        "OpenRequest.description": ["maxLength": 1024], "OpenRequest.priority": Self.range(0, 1),
        "OpenRequest.labels": ["maxProperties": 64],
        "TunnelRequest.framing": Self.choices(Framing.self), "TunnelRequest.halfClose": Self.choices(HalfClose.self),
        "TunnelRequest.idleTimeoutMs": Self.range(0, 31_536_000_000, "0: no limit; otherwise at least 1000"),
        "TunnelRequest.maximumAgeMs": Self.range(0, 31_536_000_000, "0: no limit; otherwise at least 1000"),
        "ConnectionPatch.description": ["maxLength": 1024], "ConnectionPatch.priority": Self.range(0, 1),
        "ConnectionPatch.labels": ["maxProperties": 64],
        "KeepAliveRequest.idleMs": Self.milliseconds(KeepAliveSettings.probing),
        "KeepAliveRequest.intervalMs": Self.milliseconds(KeepAliveSettings.probing),
        "KeepAliveRequest.probes": Self.range(
            KeepAliveSettings.probeCounts.lowerBound, KeepAliveSettings.probeCounts.upperBound),
        "KeepAliveRequest.userTimeoutMs": Self.milliseconds(KeepAliveSettings.userTimeouts),
        "SendRequest.data": ["contentEncoding": "base64"], "SendRequest.timeoutMs": Self.range(0, 600_000),
        "ReceiveRequest.minimumBytes": Self.range(0, 1_048_576),
        "ReceiveRequest.maximumBytes": Self.range(1, 1_048_576), "ReceiveRequest.timeoutMs": Self.range(0, 600_000),
        "TLSRequest.timeoutMs": Self.range(1, 600_000), "TLSRequest.minimumVersion": ["enum": ["1.2", "1.3"]],
        "TLSRequest.authorities": Self.text("PEM"),
        "BulkRequest.selector": Self.text(
            "The filters of listConnections by name; several values as an array, labels also as an object."),
    ]

    private static let others: [String: OrderedJSON] = [
        "Received.sizeBytes": Self.text("Size of the payload."),
        "SendAnswer.sizeBytes": Self.text("Size of the payload."),
        "TapRecord.number": Self.text("Sequence number; missing numbers were skipped."), "TapRecord.at": Self.time,
        "TapRecord.way": ["enum": ["received", "sent"]],
        "TapRecord.content": ["enum": ["stream", "text", "binary", "frames"]],
        "TapRecord.sizeBytes": Self.text("Size of the whole piece."), "TapRecord.data": ["contentEncoding": "base64"],
        "Event.at": Self.time, "Event.type": ["enum": .strings(GatewayEvent.Kind.allCases.map(\.rawValue) + ["gap"])],
        "Event.number": Self.text("Sequence number from 1 up; the id of the Server-Sent Event."),
        "Event.closeCode": Self.range(0, 65535, "RFC 6455 §7.4; 1005 for a Close without a code"),
        "Event.labels": Self.text("Labels of the closed connection."),
        "Received.type": ["enum": ["text", "data"]], "Received.data": ["contentEncoding": "base64"],
        "SendAnswer.state": ["enum": ["sent", "queued"]],
        "SendAnswer.queuedSendBytes": Self.text("Bytes queued for sending on the connection."),
        "SendAnswer.suspended": Self.text("Queued data is sent when the connection is resumed."),
        "PingAnswer.rttMs": Self.milliseconds,
        "OperationRecord.state": ["enum": ["running", "succeeded", "failed", "cancelled"]],
        "OperationRecord.startedAt": Self.time, "OperationRecord.endedAt": Self.time,
        "ServiceHealth.phase": Self.choices(ServicePhase.self),
        "Problem.status": Self.range(400, 599), "Problem.code": Self.text("Stable identifier for programs."),
        "ProblemField.pointer": Self.text("JSON pointer into the body (RFC 6901)."),
        "ProblemField.parameter": Self.text("Name of the query parameter."),
    ]
}
