import ControlAPI

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
