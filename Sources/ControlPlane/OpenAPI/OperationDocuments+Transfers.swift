import ControlAPI

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
