import ControlAPI

extension OperationDocuments {
    private static let meant: [String: DocumentValue] = [
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
