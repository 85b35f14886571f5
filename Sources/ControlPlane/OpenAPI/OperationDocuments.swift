import ControlAPI
import GatewayConfiguration
import GatewayCore
import SessionTasks

/// The OpenAPI descriptions of all operations, by the operation's name.
enum OperationDocuments {
    static let all: [String: OperationDocument] = [
        Self.service, Self.versionedService, Self.connections, Self.verbs, Self.traffic, Self.drains, Self.events,
        Self.transfers, Self.configuration, Self.entries, Self.operations,
    ]
    .reduce(into: [:]) { $0.merge($1) { first, _ in first } }

    // MARK: Parameters

    private static func integer(
        _ range: ClosedRange<Int>, _ description: String, example: Int
    ) -> OrderedJSON {
        [
            "type": "integer", "minimum": .integer(range.lowerBound), "maximum": .integer(range.upperBound),
            "description": .string(description), "example": .integer(example),
        ]
    }

    private static func milliseconds(
        from minimum: Int = 0, to maximum: Int? = nil, _ description: String, example: Int = 60_000
    ) -> OrderedJSON {
        var schema: OrderedJSON = ["type": "number", "minimum": .integer(minimum)]
        schema["maximum"] = maximum.map { .integer($0) }
        return schema.with(["description": .string(description), "example": .integer(example)])
    }

    private static func boolean(_ description: String, example: Bool = true) -> OrderedJSON {
        ["type": "boolean", "description": .string(description), "example": .boolean(example)]
    }

    private static func text(_ description: String, example: String) -> OrderedJSON {
        ["description": .string(description), "example": .string(example)]
    }

    private static func choice(_ values: [String], _ description: String, example: String) -> OrderedJSON {
        ["enum": .strings(values), "description": .string(description), "example": .string(example)]
    }

    private static let fields = Self.text(
        "Names of members, separated by commas. Default: all members.", example: "id,state,ageMs")

    private static let label = Self.text("NAME, NAME:VALUE or NAME=VALUE.", example: "team:blue")

    /// Limits of an event stream.
    private static let bounds: [String: OrderedJSON] = [
        "limit": Self.integer(
            1...StreamBounds.maximumLimit, "Ends the stream after this number of events.", example: 10),
        "durationMs": Self.milliseconds(to: 86_400_000, "Ends the stream after this time."),
    ]

    // MARK: Headers and responses

    /// Of operations that can run without their client waiting.
    private static let preference = [
        "Prefer": "respond-async: does not wait; wait=N: waits at most N seconds (RFC 7240)."
    ]
    private static let wait = ["Prefer": "wait=N: responds after at most N seconds (RFC 7240)."]
    private static let location = ["Location": "URL of the resource."]
    private static let nextPage = ["Link": "The next page (RFC 8288)."]

    private static let asynchronous = OperationDocument.Response(
        202, "Continues as an operation", .json(OperationRecord.self), headers: ["Location": "URL of the operation."])

    // MARK: Service

    private static let service: [String: OperationDocument] = [
        "getLiveness": Self.probe("Whether every loop of the gateway responds"),
        "getReadiness": Self.probe("Whether the gateway accepts connections"),
        "getStartup": Self.probe("Whether the gateway has started"),
        "getVersion": OperationDocument(
            "Name and version of the service", responses: [.init(200, "Name and version", .json(ServiceVersion.self))]),
        "getMetrics": OperationDocument(
            "Counters, gauges and histograms",
            responses: [
                .init(200, "OpenMetrics text", .text("application/openmetrics-text", example: Examples.metrics))
            ]),
        "getDocument": OperationDocument(
            "This document",
            responses: [
                .init(
                    200, "OpenAPI 3.1",
                    .init(
                        .plain([
                            "type": "object", "required": ["openapi", "info", "paths"], "examples": [Examples.document],
                        ])))
            ]),
    ]

    /// The aliases below `/v1`.
    private static let versionedService = Dictionary(
        uniqueKeysWithValues: Self.service.filter { $0.key != "getDocument" }.map {
            ($0.key + Operation.versionSuffix, $0.value)
        })

    private static func probe(_ summary: String) -> OperationDocument {
        OperationDocument(
            summary,
            responses: [.init(200, "Yes", .json(ServiceHealth.self)), .init(503, "No", .json(ServiceHealth.self))])
    }

    // MARK: Events

    private static let events: [String: OperationDocument] = [
        "followEvents": OperationDocument(
            "Follows events, as Server-Sent Events or over a WebSocket",
            parameters: Self.bounds.merging([
                "after": [
                    "type": "integer", "minimum": 0, "example": 0,
                    "description": "Number of the last event received; 0: starts with the first event that is kept.",
                ],
                "heartbeatMs": Self.milliseconds(
                    from: 10, to: 600_000,
                    "Sends a comment, or a ping, after this time without an event. Default: 15000.", example: 15_000),
                "type": Self.text(
                    "Event types, separated by commas: "
                        + GatewayEvent.Kind.allCases.map(\.rawValue).joined(separator: ", ") + ".",
                    example: "opened,closed"),
                "connection": Self.text("Ids of connections, separated by commas.", example: "17"),
                "listener": Self.text("Names of listeners, separated by commas.", example: "web"),
                "route": Self.text("Names of routes, separated by commas.", example: "chat"),
                "upstream": Self.text(
                    "Names of upstreams or URLs of endpoints, separated by commas.", example: "backend"),
                "transfer": Self.text("Ids of transfers, separated by commas.", example: "3"),
            ]) { first, _ in first },
            headers: ["Last-Event-ID": "Number of the last event received."],
            responses: [
                .init(101, "A WebSocket with one event per message"),
                .init(200, "Events, with their numbers as ids", .events(of: Event.self, example: Examples.event)),
            ], problems: [405, 409, 426])
    ]

    // MARK: Connections

    private static let selection: [String: OrderedJSON] = [
        "id": Self.text("Ids, separated by commas.", example: "17,17u"),
        "kind": Self.choice(
            ConnectionKind.allCases.map(\.rawValue), "Streams or WebSockets.", example: "webSocket"),
        "state": Self.choice(
            TaskStage.allCases.map(\.rawValue) + ["any"],
            "Default: all but closed connections; any: closed ones too.", example: "open"),
        "direction": Self.choice(
            ["accepted", "opened"], "Accepted by a listener, or opened by the gateway.", example: "accepted"),
        "listener": Self.text("The name of a listener.", example: "web"),
        "route": Self.text("The name of a route.", example: "chat"),
        "stalled": Self.boolean("Whether reading is paused because data cannot be forwarded."),
        "minAgeMs": Self.milliseconds("Minimum age."), "maxAgeMs": Self.milliseconds("Maximum age."),
        "minIdleMs": Self.milliseconds("Minimum time without payload."), "label": Self.label,
        "upstream": Self.text("The name of an upstream, or the URL of an endpoint.", example: "backend"),
        "peer": Self.text("An address, with or without its port.", example: "192.0.2.7"),
    ]

    private static let connections: [String: OperationDocument] = [
        "listConnections": OperationDocument(
            "Lists connections page by page",
            parameters: Self.selection.merging([
                "sort": Self.choice(
                    ConnectionSort.Criterion.allCases.flatMap { [$0.rawValue, "-\($0.rawValue)"] },
                    "Sort key; a leading - sorts in descending order. Default: id.", example: "-age"),
                "limit": Self.integer(1...ConnectionList.maximumLimit, "Connections per page.", example: 100),
                "fields": Self.fields,
            ]) { first, _ in first },
            responses: [.init(200, "A page", .json(ConnectionPage.self), headers: Self.nextPage)], problems: [410]),
        "openConnection": OperationDocument(
            "Opens a connection, or a tunnel between two", headers: Self.preference,
            body: [.json(OpenRequest.self, or: TunnelRequest.self)], isBodyRequired: true,
            responses: [
                .init(
                    201, "The open connection; the downstream side of a tunnel", .json(Connection.self),
                    headers: Self.location,
                    links: ["getConnection", "changeConnection", "closeConnection"] + Self.verbs.keys.sorted()),
                Self.asynchronous,
            ], problems: [404, 409, 410, 502, 504]),
        "getConnection": OperationDocument(
            "Gets a connection", parameters: ["fields": Self.fields],
            responses: [.init(200, "The connection", .json(Connection.self))], problems: [404, 410]),
        "changeConnection": OperationDocument(
            "Changes description, priority and labels; missing members stay unchanged",
            body: [.json(ConnectionPatch.self)],
            responses: [.init(200, "The current state", .json(Connection.self))], problems: [404, 409, 410]),
        "closeConnection": OperationDocument(
            "Closes a connection, with a closing handshake or at once",
            parameters: [
                "code": Self.integer(
                    1000...4999, "Code of the Close frame to a WebSocket. Default: 1000.", example: 4001),
                "abort": Self.boolean("Resets without a closing handshake. Default: false.", example: false),
                "reason": Self.text(
                    "Reason of the Close frame; at most 123 bytes of UTF-8.", example: "maintenance"),
            ], headers: Self.wait,
            responses: [
                .init(200, "Closed", .json(Connection.self)), .init(202, "Closing", .json(Connection.self)),
            ], problems: [404, 410]),
    ]

    private static func verb(_ summary: String) -> OperationDocument {
        OperationDocument(
            summary, responses: [.init(200, "The current state", .json(Connection.self))], problems: [404, 409, 410])
    }

    private static let verbs: [String: OperationDocument] = [
        "send": OperationDocument(
            "Sends one message of a WebSocket, or bytes of a stream",
            body: [.json(SendRequest.self), .text("text/plain", example: "hello"), .bytes("application/octet-stream")],
            isBodyRequired: true,
            responses: [.init(200, "Sent, or queued on a suspended connection", .json(SendAnswer.self))],
            problems: [404, 409, 410, 429, 502, 504]),
        "receive": OperationDocument(
            "Waits for the next message, or bytes of a stream, and takes them",
            parameters: [
                "minimumBytes": Self.integer(0...1_048_576, Self.sameAsMember, example: 1),
                "maximumBytes": Self.integer(1...1_048_576, Self.sameAsMember, example: 65_536),
                "timeoutMs": Self.integer(0...600_000, Self.sameAsMember, example: 5000),
            ], headers: ["Prefer": "wait=N: waits N seconds without timeoutMs (RFC 7240)."],
            body: [.json(ReceiveRequest.self)],
            responses: [
                .init(200, "The received data", .json(Received.self)), .init(204, "Nothing received in time"),
            ], problems: [404, 409, 410, 502, 504]),
        "ping": OperationDocument(
            "Pings a WebSocket", headers: Self.preference,
            responses: [.init(200, "The round-trip time", .json(PingAnswer.self)), Self.asynchronous],
            problems: [404, 409, 410, 502, 504]),
        "startSecureConnection": OperationDocument(
            "Starts TLS on a stream", headers: Self.preference, body: [.json(TLSRequest.self)],
            responses: [.init(200, "The current state", .json(Connection.self)), Self.asynchronous],
            problems: [404, 409, 410, 502, 504]),
        "closeRead": Self.verb("Closes a stream for reading"),
        "closeWrite": Self.verb("Closes a stream for writing, after queued data"),
        "suspend": Self.verb(
            "Suspends reading, sending and Pings until the connection is resumed; `send` queues up to 4 MiB, and data that a tunnel relays is still sent"
        ),
        "resume": Self.verb("Resumes reading and sending"),
    ]

    private static let sameAsMember = "Same as the member of the body, which takes precedence."

    private static let traffic: [String: OperationDocument] = [
        "attach": OperationDocument(
            "Upgrades to a WebSocket that carries the connection's traffic; an empty message closes a stream for writing",
            responses: [.init(101, "A WebSocket")], problems: [404, 405, 409, 410, 426]),
        "tap": OperationDocument(
            "Copies the connection's traffic, as Server-Sent Events or over a WebSocket",
            parameters: Self.bounds.merging([
                "sample": Self.integer(
                    1...1_000_000, "Copies one message of this number; of a stream, one piece. Default: 1.",
                    example: 100),
                "maxBytes": Self.integer(
                    0...65_536, "Most bytes copied of each message or piece. Default: 4096.", example: 4096),
            ]) { first, _ in first },
            responses: [
                .init(101, "A WebSocket with one piece per message"),
                .init(200, "Pieces", .events(of: TapRecord.self, example: Examples.piece)),
            ], problems: [404, 405, 409, 410, 426, 429]),
    ]

    // MARK: Drains

    private static let bulkParameters: [String: OrderedJSON] = [
        "all": Self.boolean("Overrides the member of the body."),
        "preview": Self.boolean("Overrides the member of the body."),
    ]

    private static let drains: [String: OperationDocument] = [
        "closeConnections": OperationDocument(
            "Closes all selected connections at once", parameters: Self.bulkParameters,
            body: [.json(BulkRequest.self)],
            responses: [.init(200, "The number of connections", .json(BulkAnswer.self))]),
        "listDrains": OperationDocument(
            "Lists drains, including ended ones", responses: [.init(200, "All drains", .list(Drain.self))]),
        "startDrain": OperationDocument(
            "Closes selected connections at a rate", parameters: Self.bulkParameters, headers: Self.wait,
            body: [.json(BulkRequest.self)],
            responses: [
                .init(200, "The ended drain, or the preview", .json(Drain.self, or: BulkAnswer.self)),
                .init(202, "The running drain", .json(Drain.self), headers: Self.location),
            ]),
        "getDrain": Self.drain("Gets a drain"),
        "cancelDrain": Self.drain("Cancels a drain; connections that are closing already still close"),
        "stopDrain": Self.drain("Same as DELETE"), "pauseDrain": Self.drain("Pauses a drain until it is resumed"),
        "resumeDrain": Self.drain("Resumes a drain"),
    ]

    private static func drain(_ summary: String) -> OperationDocument {
        OperationDocument(
            summary, responses: [.init(200, "The current state", .json(Drain.self))], problems: [404, 409])
    }

    // MARK: Transfers

    private static let transfers: [String: OperationDocument] = [
        "listTransfers": OperationDocument(
            "Lists transfers page by page",
            parameters: [
                "limit": Self.integer(1...1000, "Transfers per page.", example: 100),
                "kind": Self.choice(["data", "upload", "download"], "The kind of transfer.", example: "download"),
                "state": Self.text("States, separated by commas.", example: "running,saving"), "label": Self.label,
            ],
            responses: [.init(200, "A page", .json(TransferPage.self), headers: Self.nextPage)], problems: [410]),
        "createTransfer": OperationDocument(
            "Creates an HTTP transfer", body: [.json(TransferRequest.self)], isBodyRequired: true,
            responses: [.init(201, "The new transfer", .json(Transfer.self), headers: Self.location)],
            problems: [404, 409, 410]),
        "getTransfer": Self.transfer("Gets a transfer, with its progress and metrics"),
        "changeTransfer": Self.transfer("Changes description, priority and labels", body: ConnectionPatch.self),
        "forgetTransfer": OperationDocument(
            "Removes a transfer; cancels it if it is running", responses: [.init(204, "Removed")],
            problems: [404, 409]),
        "suspendTransfer": Self.transfer("Suspends a transfer until it is resumed"),
        "resumeTransfer": Self.transfer("Resumes a transfer"),
        "cancelTransfer": Self.transfer(
            "Cancels a transfer; can keep the data received, for a restart", body: TransferCancel.self),
        "restartTransfer": Self.transfer(
            "Restarts a transfer, from the data received if the server supports that", body: TransferRestart.self),
        "sendTransferBody": OperationDocument(
            "Sends the body of a streamed transfer", body: [.bytes("application/octet-stream")], isBodyRequired: true,
            responses: [
                .init(200, "The ended transfer", .json(Transfer.self)),
                .init(202, "The running transfer", .json(Transfer.self)),
            ], problems: [404, 409, 410, 502, 504]),
        "getTransferContent": OperationDocument(
            "Gets the received content, or a range of it", headers: ["Range": "RFC 9110 §14.2."],
            responses: [.init(200, "All content", .bytes("*/*")), .init(206, "The range", .bytes("*/*"))],
            problems: [404, 409, 410, 416]),
    ]

    private static func transfer(_ summary: String, body: OperationDocument.Model? = nil) -> OperationDocument {
        OperationDocument(
            summary, body: body.map { [OperationDocument.Content.json($0)] } ?? [],
            responses: [
                .init(200, "The current state", .json(Transfer.self)), .init(202, "Cancelling", .json(Transfer.self)),
            ], problems: [404, 409, 410])
    }

    // MARK: Configuration

    private static let dryRun = ["dryRun": Self.boolean("Shows the difference and changes nothing.")]
    private static let tag = ["ETag": "For If-Match."]
    private static let condition = [
        "If-Match": "Changes nothing if the configuration has changed (412).",
        "If-None-Match": "Changes nothing if the tag matches; *: if an entry of this name exists (412).",
    ]
    private static let ifNoneMatch = ["If-None-Match": "An ETag: 304 if nothing has changed since."]
    private static let notModified = OperationDocument.Response(304, "Not modified", headers: Self.tag)
    private static let changeProblems: [Int] = [404, 409, 412, 428]

    private static let configuration: [String: OperationDocument] = [
        "getConfiguration": OperationDocument(
            "Gets the running configuration",
            parameters: [
                "format": Self.choice(
                    ["json", "yaml"], "Format of the response. Default: by the Accept header.", example: "yaml"),
                "secrets": Self.boolean(
                    "Whether passwords and credentials are included. Default: false.", example: false),
            ], headers: Self.ifNoneMatch,
            responses: [
                .init(
                    200, "In the form of the configuration file", .init(.configuration),
                    .unspecified("application/yaml", example: Examples.yaml),
                    headers: Self.tag),
                Self.notModified,
            ], problems: [406, 409]),
        "replaceConfiguration": Self.configurationChange(
            "Replaces the running configuration",
            [.init(.configuration), .unspecified("application/yaml", example: Examples.yaml)]),
        "reloadConfiguration": Self.configurationChange("Reloads the configuration file", []),
    ]

    private static func configurationChange(
        _ summary: String, _ body: [OperationDocument.Content]
    ) -> OperationDocument {
        OperationDocument(
            summary, parameters: Self.dryRun, headers: Self.condition.merging(Self.preference) { first, _ in first },
            body: body, isBodyRequired: !body.isEmpty,
            responses: [
                .init(200, "The difference", .json(ConfigurationDifference.self), headers: Self.tag),
                Self.asynchronous,
            ], problems: Self.changeProblems)
    }

    /// Listeners, routes and upstreams.
    private static let entries: [String: OperationDocument] = ConfigurationSection.allCases.reduce(into: [:]) {
        documents, section in
        let word = section.singularName
        let name = word.prefix(1).uppercased() + word.dropFirst()
        let entry = OperationDocument.Content(.entry(section))
        let yaml = OperationDocument.Content.unspecified("application/yaml", example: Examples.yaml(of: section))
        documents["list\(name)s"] = OperationDocument(
            "Lists all \(word)s", headers: Self.ifNoneMatch,
            responses: [.init(200, "All \(word)s", .init(.entries(section)), headers: Self.tag), Self.notModified])
        documents["get\(name)"] = OperationDocument(
            "Gets a \(word) with its status", headers: Self.ifNoneMatch,
            responses: [.init(200, "The \(word)", entry, headers: Self.tag), Self.notModified], problems: [404])
        documents["create\(name)"] = Self.entryChange("Adds a \(word)", section, [entry, yaml])
        documents["replace\(name)"] = Self.entryChange(
            "Adds a \(word), or replaces the one of this name", section, [entry, yaml])
        documents["change\(name)"] = Self.entryChange(
            "Changes members of a \(word) (RFC 7396)", section,
            [.init(.change(section)), .init("application/merge-patch+json", .change(section))])
        documents["delete\(name)"] = OperationDocument(
            "Removes a \(word)", parameters: Self.dryRun, headers: Self.condition,
            responses: [
                .init(200, "The difference of a dry run", .json(ConfigurationDifference.self), headers: Self.tag),
                .init(204, "Removed"),
            ], problems: Self.changeProblems)
    }

    private static func entryChange(
        _ summary: String, _ section: ConfigurationSection, _ body: [OperationDocument.Content]
    ) -> OperationDocument {
        OperationDocument(
            summary, parameters: Self.dryRun, headers: Self.condition, body: body, isBodyRequired: true,
            responses: [
                .init(
                    200, "The current state, or the difference of a dry run",
                    .init(.either([.entry(section), .model(ConfigurationDifference.self)])), headers: Self.tag),
                .init(
                    201, "The new entry", .init(.entry(section)),
                    headers: Self.tag.merging(Self.location) { first, _ in first }),
            ], problems: Self.changeProblems)
    }

    // MARK: Operations

    private static let operations: [String: OperationDocument] = [
        "listOperations": OperationDocument(
            "Lists running and recently ended operations",
            responses: [.init(200, "The operations visible to the caller", .json(OperationList.self))]),
        "getOperation": OperationDocument(
            "Gets an operation", headers: ["Prefer": "wait=N: waits at most N seconds for its end (RFC 7240)."],
            responses: [.init(200, "The current state", .json(OperationRecord.self))], problems: [404]),
        "cancelOperation": OperationDocument(
            "Cancels an operation; removes it if it has ended",
            responses: [
                .init(200, "The current state", .json(OperationRecord.self)),
                .init(202, "Cancelling", .json(OperationRecord.self)), .init(204, "Removed"),
            ], problems: [404]),
    ]
}
