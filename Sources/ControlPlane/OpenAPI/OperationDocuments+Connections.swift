import ControlAPI
import GatewayCore
import SessionTasks

extension OperationDocuments {
    private static func milliseconds(_ description: String) -> DocumentValue {
        ["type": "number", "minimum": 0, "description": .string(description), "example": 60_000]
    }

    static func words<Choice: CaseIterable & RawRepresentable<String>>(
        _ type: Choice.Type, and more: [String] = []
    ) -> DocumentValue {
        ["type": "string", "enum": .strings(type.allCases.map(\.rawValue) + more)]
    }

    private static let fields: DocumentValue = [
        "description": "Names of members with commas between; all where it is missing.", "example": "id,state,ageMs",
    ]

    static let selection: [String: DocumentValue] = [
        "id": ["description": "Ids, with commas between.", "example": "17,17u"],
        "kind": Self.words(ConnectionKind.self).with(["description": "Streams or WebSockets.", "example": "webSocket"]),
        "state": Self.words(TaskStage.self, and: ["any"])
            .with(["description": "Default: all that live; any: those that closed too.", "example": "open"]),
        "direction": [
            "enum": ["accepted", "opened"], "example": "accepted",
            "description": "Accepted by a listener, or opened by the gateway.",
        ],
        "listener": ["description": "The name of a listener.", "example": "web"],
        "route": ["description": "The name of a route.", "example": "chat"],
        "stalled": [
            "type": "boolean", "description": "Whether data has nowhere to go just now.", "example": true,
        ],
        "minAgeMs": Self.milliseconds("At least as old."), "maxAgeMs": Self.milliseconds("At most as old."),
        "minIdleMs": Self.milliseconds("Without payload for at least as long."),
        "label": ["description": "NAME, NAME:VALUE or NAME=VALUE.", "example": "team:blue"],
        "upstream": ["description": "The name of an upstream, or the URL of an endpoint.", "example": "backend"],
        "peer": ["description": "An address, with or without its port.", "example": "192.0.2.7"],
    ]

    static let connections: [String: OperationDocument] = [
        "listConnections": OperationDocument(
            "Connections, by pages",
            parameters: Self.selection.merging([
                "sort": [
                    "enum": .strings(
                        ConnectionSort.Criterion.allCases.flatMap { [$0.rawValue, "-\($0.rawValue)"] }),
                    "description": "By what they are sorted; - turns the order. Default: id.", "example": "-age",
                ],
                "limit": [
                    "type": "integer", "minimum": 1, "maximum": .integer(ConnectionList.largestLimit), "example": 100,
                    "description": "Connections on a page.",
                ],
                "fields": Self.fields,
            ]) { first, _ in first },
            answers: [
                .init(200, "A page", .json(ConnectionPage.self), headers: ["Link": "The next page (RFC 8288)."])
            ], problems: [410]),
        "openConnection": OperationDocument(
            "Opens a connection, or a tunnel between two",
            headers: OperationDocuments.preference,
            body: [.json(OpenRequest.self, or: TunnelRequest.self)], isBodyRequired: true,
            answers: [
                .init(
                    201, "It is open; of a tunnel, its downstream side", .json(Connection.self),
                    headers: ["Location": "Where it is."],
                    links: ["getConnection", "changeConnection", "closeConnection"] + Self.verbs.keys.sorted()),
                OperationDocuments.goesOn,
            ],
            problems: [404, 409, 410, 502, 504]),
        "getConnection": OperationDocument(
            "One connection", parameters: ["fields": Self.fields],
            answers: [.init(200, "All that is known of it", .json(Connection.self))], problems: [404, 410]),
        "changeConnection": OperationDocument(
            "Changes description, priority and labels; what is missing stays", body: [.json(ConnectionPatch.self)],
            answers: [.init(200, "As it is now", .json(Connection.self))], problems: [404, 409, 410]),
        "closeConnection": OperationDocument(
            "Ends a connection: with a closing handshake, or at once",
            parameters: [
                "code": [
                    "type": "integer", "minimum": 1000, "maximum": 4999, "example": 4001,
                    "description": "Of the Close to a WebSocket. Default: 1000.",
                ],
                "abort": [
                    "type": "boolean", "example": false,
                    "description": "Ends with a reset, without a closing handshake. Default: no.",
                ],
                "reason": ["description": "Of the Close; at most 123 bytes of UTF-8.", "example": "maintenance"],
            ], headers: ["Prefer": "wait=N: answers after N seconds at the latest (RFC 7240)."],
            answers: [
                .init(200, "It is over", .json(Connection.self)),
                .init(202, "It is ending", .json(Connection.self)),
            ], problems: [404, 410]),
    ]

    // MARK: Verbs

    private static func verb(_ summary: String, _ problems: [Int] = []) -> OperationDocument {
        OperationDocument(
            summary, answers: [.init(200, "As it is now", .json(Connection.self))],
            problems: [404, 409, 410] + problems)
    }

    static let verbs: [String: OperationDocument] = [
        "send": OperationDocument(
            "Sends one message of a WebSocket, or bytes of a stream",
            body: [.json(SendRequest.self), .text("text/plain", example: "hello"), .bytes("application/octet-stream")],
            isBodyRequired: true,
            answers: [
                .init(
                    200, "What became of it; a connection that is suspended only queues it", .json(SendAnswer.self))
            ],
            problems: [404, 409, 410, 429, 502, 504]),
        "receive": OperationDocument(
            "Takes the next message, or bytes of a stream, waiting for them",
            parameters: [
                "minimumBytes": [
                    "type": "integer", "minimum": 0, "maximum": 1_048_576, "example": 1,
                    "description": "As the member of the body, where that does not say it.",
                ],
                "maximumBytes": [
                    "type": "integer", "minimum": 1, "maximum": 1_048_576, "example": 65_536,
                    "description": "As the member of the body, where that does not say it.",
                ],
                "timeoutMs": [
                    "type": "integer", "minimum": 0, "maximum": 600_000, "example": 5000,
                    "description": "As the member of the body, where that does not say it.",
                ],
            ], headers: ["Prefer": "wait=N: waits N seconds where no timeoutMs is given (RFC 7240)."],
            body: [.json(ReceiveRequest.self)],
            answers: [
                .init(200, "What was received", .json(Received.self)), .init(204, "Nothing came in time"),
            ], problems: [404, 409, 410, 502, 504]),
        "ping": OperationDocument(
            "Pings a WebSocket", headers: OperationDocuments.preference,
            answers: [.init(200, "It answered", .json(PingAnswer.self)), OperationDocuments.goesOn],
            problems: [404, 409, 410, 502, 504]),
        "startSecureConnection": OperationDocument(
            "Starts TLS on a stream", headers: OperationDocuments.preference, body: [.json(TLSRequest.self)],
            answers: [.init(200, "As it is now", .json(Connection.self)), OperationDocuments.goesOn],
            problems: [404, 409, 410, 502, 504]),
        "closeRead": Self.verb("Takes nothing more from a stream"),
        "closeWrite": Self.verb("Ends what is sent on a stream, after what waits"),
        "suspend": Self.verb(
            "Until it is resumed reads nothing, keeps what `send` gives it in a queue of at most 4 MiB, and sends no Ping; what a relay passes on to it is still sent"
        ),
        "resume": Self.verb("Reads and sends again"),
    ]
}
