import ControlAPI
import GatewayConfiguration
import GatewayCore
import SessionTasks

/// The documents of all operations, by the operation's name.
enum OperationDocuments {
    static let all: [String: OperationDocument] = [
        Self.service, Self.serviceUnderVersion, Self.connections, Self.verbs, Self.bulk, Self.events, Self.transfers,
        Self.configuration,
        Self.entries, Self.operations,
    ]
    .reduce(into: [:]) { $0.merge($1) { first, _ in first } }

    static let service: [String: OperationDocument] = [
        "getLiveness": Self.probe("Whether every loop of the gateway takes its turns"),
        "getReadiness": Self.probe("Whether the gateway takes connections"),
        "getStartup": Self.probe("Whether the gateway has come up"),
        "getVersion": OperationDocument(
            "What answers", answers: [.init(200, "Its name and version", .json(ServiceVersion.self))]),
        "getMetrics": OperationDocument(
            "Counters, gauges and histograms",
            answers: [.init(200, "OpenMetrics text", .text("application/openmetrics-text", example: Examples.metrics))]),
        "getDocument": OperationDocument(
            "This document",
            answers: [
                .init(
                    200, "OpenAPI 3.1",
                    .init(
                        .plain([
                            "type": "object", "required": ["openapi", "info", "paths"], "examples": [Examples.document],
                        ])))
            ]),
    ]

    /// The same once more, below `/v1`.
    private static let serviceUnderVersion = Dictionary(
        uniqueKeysWithValues: Self.service.filter { $0.key != "getDocument" }.map {
            ($0.key + Operation.versionSuffix, $0.value)
        })

    private static func probe(_ summary: String) -> OperationDocument {
        OperationDocument(
            summary,
            answers: [
                .init(200, "Yes", .json(ServiceHealth.self)), .init(503, "No", .json(ServiceHealth.self)),
            ])
    }

    /// Of what goes on for as long as its client stays, unless it is bounded.
    static let bounds: [String: OrderedJSON] = [
        "limit": [
            "type": "integer", "minimum": 1, "maximum": .integer(StreamBounds.maximumLimit),
            "description": "Ends after as many.", "example": 10,
        ],
        "durationMs": [
            "type": "number", "minimum": 0, "maximum": 86_400_000, "description": "Ends after this time.",
            "example": 60_000,
        ],
    ]

    static let events: [String: OperationDocument] = [
        "followEvents": OperationDocument(
            "What happens, as it happens: Server-Sent Events, or a WebSocket where one is asked for",
            parameters: Self.bounds.merging([
                "after": [
                    "type": "integer", "minimum": 0, "example": 0,
                    "description": "The number of the last event that is known; 0: from the first that is kept.",
                ],
                "heartbeatMs": [
                    "type": "number", "minimum": 10, "maximum": 600_000, "example": 15_000,
                    "description": "A comment, or a ping, after so long without an event. Default: 15000.",
                ],
                "type": [
                    "description": .string(
                        "Types, with commas between: "
                            + GatewayEvent.Kind.allCases.map(\.rawValue).joined(separator: ", ") + "."),
                    "example": "opened,closed",
                ],
                "connection": ["description": "Ids of connections, with commas between.", "example": "17"],
                "listener": ["description": "Names of listeners, with commas between.", "example": "web"],
                "route": ["description": "Names of routes, with commas between.", "example": "chat"],
                "upstream": [
                    "description": "Names of upstreams, or URLs of endpoints, with commas between.",
                    "example": "backend",
                ],
                "transfer": ["description": "Ids of transfers, with commas between.", "example": "3"],
            ]) { first, _ in first },
            headers: ["Last-Event-ID": "The number of the last event that is known."],
            answers: [
                .init(101, "A WebSocket, each of whose messages is an event"),
                .init(
                    200, "Events, each with its number as id", .events(of: Event.self, example: Examples.event)),
            ], problems: [405, 409, 426])
    ]
}

extension OperationDocuments {
    private static func milliseconds(_ description: String) -> OrderedJSON {
        ["type": "number", "minimum": 0, "description": .string(description), "example": 60_000]
    }

    static func words<Choice: CaseIterable & RawRepresentable<String>>(
        _ type: Choice.Type, and more: [String] = []
    ) -> OrderedJSON {
        ["type": "string", "enum": .strings(type.allCases.map(\.rawValue) + more)]
    }

    private static let fields: OrderedJSON = [
        "description": "Names of members with commas between; all where it is missing.", "example": "id,state,ageMs",
    ]

    static let selection: [String: OrderedJSON] = [
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
                    "type": "integer", "minimum": 1, "maximum": .integer(ConnectionList.maximumLimit), "example": 100,
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

extension OperationDocuments {
    private static let meant: [String: OrderedJSON] = [
        "all": ["type": "boolean", "description": "As the member of the body.", "example": true],
        "preview": ["type": "boolean", "description": "As the member of the body.", "example": true],
    ]

    static let bulk: [String: OperationDocument] = [
        "closeConnections": OperationDocument(
            "Ends every connection that a selector means, at once", parameters: Self.meant,
            body: [.json(BulkRequest.self)], answers: [.init(200, "How many", .json(BulkAnswer.self))]),
        "attach": OperationDocument(
            "Makes a WebSocket of the request that is the connection's traffic; an empty message closes a stream for writing",
            answers: [.init(101, "A WebSocket")], problems: [404, 405, 409, 410, 426]),
        "tap": OperationDocument(
            "A copy of the connection's traffic: Server-Sent Events, or a WebSocket where one is asked for",
            parameters: OperationDocuments.bounds.merging([
                "sample": [
                    "type": "integer", "minimum": 1, "maximum": 1_000_000, "example": 100,
                    "description": "One message of so many is copied; of a stream, one piece. Default: 1.",
                ],
                "maxBytes": [
                    "type": "integer", "minimum": 0, "maximum": 65_536, "example": 4096,
                    "description": "Bytes of each that are copied at most. Default: 4096.",
                ],
            ]) { first, _ in first },
            answers: [
                .init(101, "A WebSocket, each of whose messages is a piece"),
                .init(200, "Pieces", .events(of: TapRecord.self, example: Examples.piece)),
            ], problems: [404, 405, 409, 410, 426, 429]),
        "listDrains": OperationDocument(
            "Drains, those that are over included", answers: [.init(200, "All that are remembered", .list(Drain.self))]),
        "startDrain": OperationDocument(
            "Ends connections that a selector means, at a rate", parameters: Self.meant,
            headers: ["Prefer": "wait=N: answers after N seconds at the latest (RFC 7240)."],
            body: [.json(BulkRequest.self)],
            answers: [
                .init(200, "It is over, or what a preview counts", .json(Drain.self, or: BulkAnswer.self)),
                .init(202, "It is under way", .json(Drain.self), headers: ["Location": "Where it is."]),
            ]),
        "getDrain": Self.drain("One drain"), "cancelDrain": Self.drain("Ends a drain; who was told stays told"),
        "stopDrain": Self.drain("The same as DELETE"),
        "pauseDrain": Self.drain("Tells nobody more until it is resumed"), "resumeDrain": Self.drain("Goes on"),
    ]

    private static func drain(_ summary: String) -> OperationDocument {
        OperationDocument(summary, answers: [.init(200, "As it is now", .json(Drain.self))], problems: [404, 409])
    }
}

extension OperationDocuments {
    static let transfers: [String: OperationDocument] = [
        "listTransfers": OperationDocument(
            "Transfers, by pages",
            parameters: [
                "limit": [
                    "type": "integer", "minimum": 1, "maximum": 1000, "description": "Transfers on a page.",
                    "example": 100,
                ],
                "kind": [
                    "enum": ["data", "upload", "download"], "description": "Of this kind.", "example": "download",
                ],
                "state": ["description": "States, with commas between.", "example": "running,saving"],
                "label": ["description": "NAME, NAME:VALUE or NAME=VALUE.", "example": "team:blue"],
            ],
            answers: [
                .init(200, "A page", .json(TransferPage.self), headers: ["Link": "The next page (RFC 8288)."])
            ], problems: [410]),
        "createTransfer": OperationDocument(
            "Loads or sends something over HTTP", body: [.json(TransferRequest.self)], isBodyRequired: true,
            answers: [.init(201, "It is there", .json(Transfer.self), headers: ["Location": "Where it is."])],
            problems: [404, 409, 410]),
        "getTransfer": Self.transfer("One transfer, with its progress and metrics"),
        "changeTransfer": Self.transfer("Changes description, priority and labels", body: ConnectionPatch.self),
        "forgetTransfer": OperationDocument(
            "Forgets a transfer; one that is under way is cancelled", answers: [.init(204, "It is forgotten")],
            problems: [404, 409]),
        "suspendTransfer": Self.transfer("Loads nothing more until it is resumed"),
        "resumeTransfer": Self.transfer("Goes on"),
        "cancelTransfer": Self.transfer(
            "Ends a transfer; what is there can be kept to go on from", body: TransferCancel.self),
        "restartTransfer": Self.transfer(
            "Begins again, from what is there where the server can do that", body: TransferRestart.self),
        "sendTransferBody": OperationDocument(
            "Brings the body of a transfer that was made without one", body: [.bytes("application/octet-stream")],
            isBodyRequired: true,
            answers: [
                .init(200, "It is over", .json(Transfer.self)), .init(202, "It goes on", .json(Transfer.self)),
            ], problems: [404, 409, 410, 502, 504]),
        "getTransferContent": OperationDocument(
            "What was received, or a range of it", headers: ["Range": "RFC 9110 §14.2."],
            answers: [
                .init(200, "All of it", .bytes("*/*")), .init(206, "The range", .bytes("*/*")),
            ], problems: [404, 409, 410, 416]),
    ]

    private static func transfer(
        _ summary: String, body: (any (Decodable & Sendable).Type)? = nil
    ) -> OperationDocument {
        OperationDocument(
            summary, body: body.map { [OperationDocument.Content.json($0)] } ?? [],
            answers: [
                .init(200, "As it is now", .json(Transfer.self)), .init(202, "It is ending", .json(Transfer.self)),
            ], problems: [404, 409, 410])
    }
}

extension OperationDocuments {
    private static let dryRun: [String: OrderedJSON] = [
        "dryRun": ["type": "boolean", "description": "Shows the difference and changes nothing.", "example": true]
    ]
    private static let tag = ["ETag": "Of the whole configuration, for If-Match."]
    private static let condition = [
        "If-Match": "Changes nothing where the configuration is another one by now (412).",
        "If-None-Match": "Changes nothing where it is this one; *: where there is one of the name (412).",
    ]
    private static let place = ["Location": "Where it is."]
    private static let known = ["If-None-Match": "An ETag: 304 while nothing has changed since."]
    private static let unchanged = OperationDocument.Answer(304, "It is known already", headers: Self.tag)
    private static let slow = Self.condition.merging(OperationDocuments.preference) { first, _ in first }
    private static let changes: [Int] = [404, 409, 412, 428]

    static let configuration: [String: OperationDocument] = [
        "getConfiguration": OperationDocument(
            "The configuration that runs",
            parameters: [
                "format": [
                    "enum": ["json", "yaml"], "example": "yaml",
                    "description": "Of the answer; where it is missing, what Accept prefers.",
                ],
                "secrets": [
                    "type": "boolean", "example": false,
                    "description": "Whether passwords and credentials are shown. Default: no.",
                ],
            ], headers: Self.known,
            answers: [
                .init(
                    200, "As a file has it", .init(.configuration),
                    .unspecified("application/yaml", example: Examples.yaml),
                    headers: Self.tag),
                Self.unchanged,
            ], problems: [406, 409]),
        "replaceConfiguration": OperationDocument(
            "Runs another configuration", parameters: Self.dryRun, headers: Self.slow,
            body: [.init(.configuration), .unspecified("application/yaml", example: Examples.yaml)],
            isBodyRequired: true,
            answers: [
                .init(200, "What changed", .json(ConfigurationDifference.self), headers: Self.tag),
                OperationDocuments.goesOn,
            ],
            problems: Self.changes),
        "reloadConfiguration": OperationDocument(
            "Reads the file again", parameters: Self.dryRun, headers: Self.slow,
            answers: [
                .init(200, "What changed", .json(ConfigurationDifference.self), headers: Self.tag),
                OperationDocuments.goesOn,
            ],
            problems: Self.changes),
    ]

    /// Listeners, routes and upstreams, which are handled alike.
    static let entries: [String: OperationDocument] = ConfigurationSection.allCases.reduce(into: [:]) { all, section in
        let name = section.singularName.prefix(1).uppercased() + section.singularName.dropFirst()
        let entry = OperationDocument.Content(.entry(section))
        func change(_ summary: String, _ body: [OperationDocument.Content]) -> OperationDocument {
            OperationDocument(
                summary, parameters: Self.dryRun, headers: Self.condition, body: body, isBodyRequired: true,
                answers: [
                    .init(
                        200, "As it is now, or the difference of a dry run",
                        .init(.either([.entry(section), .model(ConfigurationDifference.self)])), headers: Self.tag),
                    .init(201, "It is there", entry, headers: Self.tag.merging(Self.place) { first, _ in first }),
                ], problems: Self.changes)
        }
        all["list\(name)s"] = OperationDocument(
            "Every \(section.singularName)", headers: Self.known,
            answers: [.init(200, "All", .init(.entries(section)), headers: Self.tag), Self.unchanged])
        all["get\(name)"] = OperationDocument(
            "One \(section.singularName), as the configuration has it, with its state", headers: Self.known,
            answers: [.init(200, "It", entry, headers: Self.tag), Self.unchanged], problems: [404])
        let yaml = OperationDocument.Content.unspecified("application/yaml", example: Examples.yaml(of: section))
        all["create\(name)"] = change("Adds a \(section.singularName)", [entry, yaml])
        all["replace\(name)"] = change(
            "Puts a \(section.singularName) there, in place of one of its name", [entry, yaml])
        all["change\(name)"] = change(
            "Changes members of a \(section.singularName) (RFC 7396)",
            [.init(.change(section)), .init("application/merge-patch+json", .change(section))])
        all["delete\(name)"] = OperationDocument(
            "Takes a \(section.singularName) away", parameters: Self.dryRun, headers: Self.condition,
            answers: [
                .init(200, "The difference of a dry run", .json(ConfigurationDifference.self), headers: Self.tag),
                .init(204, "It is gone"),
            ], problems: Self.changes)
    }
}

extension OperationDocuments {
    /// Of what may be slow.
    static let preference = [
        "Prefer": "respond-async: does not wait; wait=N: waits at most N seconds (RFC 7240)."
    ]

    static let goesOn = OperationDocument.Answer(
        202, "It goes on, as an operation", .json(OperationRecord.self), headers: ["Location": "Where that is."])

    static let operations: [String: OperationDocument] = [
        "listOperations": OperationDocument(
            "Requests that go on while nobody waits, and those that ended last",
            answers: [.init(200, "Those that the caller may see", .json(OperationList.self))]),
        "getOperation": OperationDocument(
            "One operation", headers: ["Prefer": "wait=N: waits at most N seconds for its end (RFC 7240)."],
            answers: [.init(200, "As it is now", .json(OperationRecord.self))], problems: [404]),
        "cancelOperation": OperationDocument(
            "Gives up an operation; one that is over is forgotten",
            answers: [
                .init(200, "As it is now", .json(OperationRecord.self)),
                .init(202, "It is being given up", .json(OperationRecord.self)),
                .init(204, "It is forgotten"),
            ], problems: [404]),
    ]
}
