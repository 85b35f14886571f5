import ControlAPI
import GatewayCore

extension OperationDocuments {
    private static let dryRun: [String: DocumentValue] = [
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
        let name = section.word.prefix(1).uppercased() + section.word.dropFirst()
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
            "Every \(section.word)", headers: Self.known,
            answers: [.init(200, "All", .init(.entries(section)), headers: Self.tag), Self.unchanged])
        all["get\(name)"] = OperationDocument(
            "One \(section.word), as the configuration has it, with its state", headers: Self.known,
            answers: [.init(200, "It", entry, headers: Self.tag), Self.unchanged], problems: [404])
        let yaml = OperationDocument.Content.unspecified("application/yaml", example: Examples.yaml(of: section))
        all["create\(name)"] = change("Adds a \(section.word)", [entry, yaml])
        all["replace\(name)"] = change("Puts a \(section.word) there, in place of one of its name", [entry, yaml])
        all["change\(name)"] = change(
            "Changes members of a \(section.word) (RFC 7396)",
            [.init(.change(section)), .init("application/merge-patch+json", .change(section))])
        all["delete\(name)"] = OperationDocument(
            "Takes a \(section.word) away", parameters: Self.dryRun, headers: Self.condition,
            answers: [
                .init(200, "The difference of a dry run", .json(ConfigurationDifference.self), headers: Self.tag),
                .init(204, "It is gone"),
            ], problems: Self.changes)
    }
}
