import ControlAPI

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
            answers: [.init(200, "OpenMetrics text", .other("application/openmetrics-text"))]),
        "getDocument": OperationDocument(
            "This document", answers: [.init(200, "OpenAPI 3.1", .other("application/json"))]),
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
    static let bounds: [String: DocumentValue] = [
        "limit": [
            "type": "integer", "minimum": 1, "maximum": .integer(StreamBounds.largestLimit),
            "description": "Ends after as many.",
        ],
        "durationMs": [
            "type": "number", "minimum": 0, "maximum": 86_400_000, "description": "Ends after this time.",
        ],
    ]

    static let events: [String: OperationDocument] = [
        "followEvents": OperationDocument(
            "What happens, as it happens: Server-Sent Events, or a WebSocket where one is asked for",
            parameters: Self.bounds.merging([
                "after": ["type": "integer", "minimum": 0],
                "heartbeatMs": ["type": "number", "minimum": 10, "maximum": 600_000],
            ]) { first, _ in first },
            headers: ["Last-Event-ID": "The number of the last event that is known."],
            answers: [
                .init(101, "A WebSocket, each of whose messages is an event"),
                .init(200, "Events, each with its number as id", .other("text/event-stream")),
            ], problems: [405, 409, 426])
    ]
}
