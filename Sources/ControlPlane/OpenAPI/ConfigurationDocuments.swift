import ControlAPI
import GatewayConfiguration

/// The OpenAPI descriptions of the operations on the configuration.
enum ConfigurationDocuments {
    private static let dryRun = ["dryRun": OrderedJSON.boolean("Shows the difference and changes nothing.")]
    private static let tag = ["ETag": "For If-Match."]
    private static let condition = [
        "If-Match": "Changes nothing if the configuration has changed (412).",
        "If-None-Match": "Changes nothing if the tag matches; *: if an entry of this name exists (412).",
    ]
    private static let ifNoneMatch = ["If-None-Match": "An ETag: 304 if nothing has changed since."]
    private static let notModified = OperationDocument.Response(304, "Not modified", headers: Self.tag)
    private static let changeProblems: [Int] = [404, 409, 412, 428]

    static let get = OperationDocument(
        "Gets the running configuration",
        parameters: [
            "format": .choice(
                ["json", "yaml"], "Format of the response. Default: by the Accept header.", example: "yaml"),
            "secrets": .boolean("Whether passwords and credentials are included. Default: false.", example: false),
        ], headers: Self.ifNoneMatch,
        responses: [
            .init(
                200, "In the form of the configuration file", .init(.configuration),
                .unspecified("application/yaml", example: Examples.yaml), headers: Self.tag),
            Self.notModified,
        ], problems: [406, 409])
    static let replace = Self.configurationChange(
        "Replaces the running configuration",
        [.init(.configuration), .unspecified("application/yaml", example: Examples.yaml)])
    static let reload = Self.configurationChange("Reloads the configuration file", [])

    private static func configurationChange(
        _ summary: String, _ body: [OperationDocument.Content]
    ) -> OperationDocument {
        OperationDocument(
            summary, parameters: Self.dryRun, headers: Self.condition,
            body: body, isBodyRequired: !body.isEmpty,
            responses: [.init(200, "The difference", .json(ConfigurationDifference.self), headers: Self.tag)],
            problems: Self.changeProblems)
    }

    // MARK: Listeners, routes and upstreams

    static func list(_ section: ConfigurationSection) -> OperationDocument {
        OperationDocument(
            "Lists all \(section.singularName)s", headers: Self.ifNoneMatch,
            responses: [
                .init(200, "All \(section.singularName)s", .init(.entries(section)), headers: Self.tag),
                Self.notModified,
            ])
    }

    static func get(_ section: ConfigurationSection) -> OperationDocument {
        OperationDocument(
            "Gets a \(section.singularName) with its status", headers: Self.ifNoneMatch,
            responses: [
                .init(200, "The \(section.singularName)", .init(.entry(section)), headers: Self.tag), Self.notModified,
            ], problems: [404])
    }

    static func create(_ section: ConfigurationSection) -> OperationDocument {
        self.entryChange("Adds a \(section.singularName)", section, self.bodies(of: section))
    }

    static func replace(_ section: ConfigurationSection) -> OperationDocument {
        self.entryChange(
            "Adds a \(section.singularName), or replaces the one of this name", section, self.bodies(of: section))
    }

    static func change(_ section: ConfigurationSection) -> OperationDocument {
        self.entryChange(
            "Changes members of a \(section.singularName) (RFC 7396)", section,
            [.init(.change(section)), .init("application/merge-patch+json", .change(section))])
    }

    static func delete(_ section: ConfigurationSection) -> OperationDocument {
        OperationDocument(
            "Removes a \(section.singularName)", parameters: Self.dryRun, headers: Self.condition,
            responses: [
                .init(200, "The difference of a dry run", .json(ConfigurationDifference.self), headers: Self.tag),
                .init(204, "Removed"),
            ], problems: Self.changeProblems)
    }

    private static func bodies(of section: ConfigurationSection) -> [OperationDocument.Content] {
        [.init(.entry(section)), .unspecified("application/yaml", example: Examples.yaml(of: section))]
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
                    headers: Self.tag.merging(.location) { first, _ in first }),
            ], problems: Self.changeProblems)
    }
}
