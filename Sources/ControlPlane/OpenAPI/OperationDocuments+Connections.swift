import ControlAPI
import GatewayCore
import SessionTasks

extension OperationDocuments {
    private static let boolean: DocumentValue = ["type": "boolean"]
    private static let milliseconds: DocumentValue = ["type": "number", "minimum": 0]

    static func words<Choice: CaseIterable & RawRepresentable<String>>(
        _ type: Choice.Type, and more: [String] = []
    ) -> DocumentValue {
        ["type": "string", "enum": .strings(type.allCases.map(\.rawValue) + more)]
    }

    private static let fields: DocumentValue = [
        "type": "string", "description": "Names of members with commas between; all where it is missing.",
    ]

    static let selection: [String: DocumentValue] = [
        "kind": Self.words(ConnectionKind.self), "state": Self.words(TaskStage.self, and: ["any"]),
        "direction": ["type": "string", "enum": ["accepted", "opened"]], "stalled": Self.boolean,
        "minAgeMs": Self.milliseconds, "maxAgeMs": Self.milliseconds, "minIdleMs": Self.milliseconds,
        "label": ["type": "string", "description": "NAME, NAME:VALUE or NAME=VALUE."],
        "upstream": ["type": "string", "description": "The name of an upstream, or the URL of an endpoint."],
        "peer": ["type": "string", "description": "An address, with or without its port."],
    ]

    static let connections: [String: OperationDocument] = [
        "listConnections": OperationDocument(
            "Connections, by pages",
            parameters: Self.selection.merging([
                "sort": [
                    "type": "string",
                    "enum": .strings(
                        ConnectionSort.Criterion.allCases.flatMap { [$0.rawValue, "-\($0.rawValue)"] }),
                ],
                "limit": ["type": "integer", "minimum": 1, "maximum": .integer(ConnectionList.largestLimit)],
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
                "code": ["type": "integer", "minimum": 1000, "maximum": 4999], "abort": Self.boolean,
                "reason": ["type": "string", "description": "At most 123 bytes of UTF-8."],
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
            body: [.json(SendRequest.self), .other("text/plain"), .other("application/octet-stream")],
            isBodyRequired: true,
            answers: [
                .init(
                    200, "What became of it; a connection that is suspended only queues it", .json(SendAnswer.self))
            ],
            problems: [404, 409, 410, 429, 502, 504]),
        "receive": OperationDocument(
            "Takes the next message, or bytes of a stream, waiting for them",
            parameters: [
                "minimumBytes": ["type": "integer", "minimum": 0, "maximum": 1_048_576],
                "maximumBytes": ["type": "integer", "minimum": 1, "maximum": 1_048_576],
                "timeoutMs": ["type": "integer", "minimum": 0, "maximum": 600_000],
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
