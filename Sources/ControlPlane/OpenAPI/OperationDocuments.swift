import ControlAPI
import GatewayCore

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
    static let bounds: [String: DocumentValue] = [
        "limit": [
            "type": "integer", "minimum": 1, "maximum": .integer(StreamBounds.largestLimit),
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
