import ControlAPI
import GatewayConfiguration
import GatewayCore
import HTTPTypes
import HummingbirdCore
import NIOCore
import StreamTransport
import WireText

/// `/v1/configuration`: the running configuration, in the form of the configuration file.
struct ConfigurationResource: Sendable {
    private static let bodyLimit = ConfigurationReader.maximumFileSize

    let context: ControlContext

    var operations: [Operation] {
        let path: PathTemplate = "/v1/configuration"
        let json = OperationDocument.Content(.configuration)
        let yaml = OperationDocument.Content.unspecified("application/yaml", example: Examples.yaml)
        return [
            Operation(
                "getConfiguration", .get, path, .configure,
                OperationDocument(
                    "Gets the running configuration",
                    parameters: [
                        "format": .choice(
                            ["json", "yaml"], "Format of the response. Default: by the Accept header.", example: "yaml"),
                        "secrets": .boolean(
                            "Whether passwords and credentials are included. Default: false.", example: false),
                    ], headers: .ifNoneMatch,
                    responses: [
                        .init(200, "In the form of the configuration file", json, yaml, headers: .entityTag),
                        .notModified,
                    ], problems: [406, 409])
            ) { try await self.get($0) },
            Operation(
                "replaceConfiguration", .put, path, .configure,
                Self.change("Replaces the running configuration", [json, yaml]), bodyLimit: Self.bodyLimit,
                isLongRunning: true
            ) { try await self.replace($0) },
            Operation(
                "reloadConfiguration", .post, path + ":reload", .configure,
                Self.change("Reloads the configuration file", []), isLongRunning: true
            ) { try await self.reload($0) },
        ]
    }

    private static func change(_ summary: String, _ body: [OperationDocument.Content]) -> OperationDocument {
        .configurationChange(
            summary, body: body,
            responses: [.init(200, "The difference", .json(ConfigurationDifference.self), headers: .entityTag)])
    }

    private func get(_ call: ControlCall) async throws -> Response {
        let snapshot = await self.context.configuration.snapshot
        let showsSecrets = try call.query.boolean("secrets") ?? false
        let document = showsSecrets ? snapshot.document : snapshot.document.hidingSecrets()
        let headers: HTTPFields = [.eTag: EntityTag(revision: snapshot.revision).description]
        guard try self.wantsYAML(call) else {
            let response = Response.json(
                ConfigurationSchema.Form.section(ConfigurationSchema.whole).json(document),
                headers: headers)
            return call.conditional(response, revision: snapshot.revision)
        }
        guard let text = YAMLText.text(of: document) else {
            throw ControlProblem(500, "internal-error", "The configuration could not be written as YAML.")
        }
        var fields = headers
        fields[.contentType] = "application/yaml"
        fields[.cacheControl] = "no-store"
        let body = ResponseBody(byteBuffer: ByteBuffer(string: text))
        return call.conditional(
            Response(status: .ok, headers: fields, body: body), revision: snapshot.revision)
    }

    private func wantsYAML(_ call: ControlCall) throws(ControlProblem) -> Bool {
        switch try call.query.value("format") {
        case "yaml": return true
        case "json": return false
        case nil:
            let accepted = (call.request.headers[.accept] ?? "").lowercased()
            return accepted.contains("yaml") && !accepted.contains("json")
        default:
            throw ControlProblem.invalid(parameter: "format", "format must be json or yaml.")
        }
    }

    private func replace(_ call: ControlCall) async throws -> Response {
        try self.context.checkNotDraining()
        let document = try await call.document(as: .section(ConfigurationSchema.whole))
        let isDryRun = try call.query.boolean("dryRun") ?? false
        call.runningOperation?.accept()
        let result = await self.context.configuration.apply(
            .replace(document), isDryRun: isDryRun, if: call.condition(nil, nil))
        return try self.response(to: result, isDryRun)
    }

    private func reload(_ call: ControlCall) async throws -> Response {
        try self.context.checkNotDraining()
        let isDryRun = try call.query.boolean("dryRun") ?? false
        call.runningOperation?.accept()
        let result = await self.context.configuration.reload(isDryRun: isDryRun, if: call.condition(nil, nil))
        return try self.response(to: result, isDryRun)
    }

    private func response(
        to result: Result<RunningConfiguration.Outcome, ConfigurationRefusal>, _ isDryRun: Bool
    ) throws(ControlProblem) -> Response {
        switch result {
        case .failure(let refusal): throw ControlProblem(refusal)
        case .success(let outcome):
            var headers: HTTPFields = [:]
            if !isDryRun { headers[.eTag] = EntityTag(revision: outcome.snapshot.revision).description }
            return .json(
                ConfigurationDifference(outcome.changes, applied: !isDryRun), headers: headers)
        }
    }
}

extension OperationDocument {
    /// A change of the configuration, or of an entry of a list.
    static func configurationChange(_ summary: String, body: [Content], responses: [Response]) -> OperationDocument {
        OperationDocument(
            summary, parameters: ["dryRun": .boolean("Shows the difference and changes nothing.")],
            headers: [
                "If-Match": "Changes nothing if the configuration has changed (412).",
                "If-None-Match": "Changes nothing if the tag matches; *: if an entry of this name exists (412).",
            ], body: body, isBodyRequired: !body.isEmpty, responses: responses, problems: [404, 409, 412, 428])
    }
}

extension OperationDocument.Response {
    static let notModified = Self(304, "Not modified", headers: .entityTag)
}

extension [String: String] {
    static let entityTag: Self = ["ETag": "For If-Match."]
    static let ifNoneMatch: Self = ["If-None-Match": "An ETag: 304 if nothing has changed since."]
}

extension ControlContext {
    /// - Throws: `ControlProblem` 503 while the gateway drains.
    func checkNotDraining() throws(ControlProblem) {
        guard self.phase != .draining else { throw ControlProblem.draining }
    }
}

extension ControlCall {
    /// Reads the body as a part of a configuration, in JSON or YAML.
    /// - Parameter form: the form of that part.
    func document(as form: ConfigurationSchema.Form) async throws -> DocumentNode {
        try self.checkNotCompressed()
        var buffer = try await self.body()
        let bytes = buffer.readBytes(length: buffer.readableBytes) ?? []
        switch self.mediaType {
        case nil, "application/json", "application/merge-patch+json":
            return try DocumentNode(try JSONBody.value(bytes), as: form)
        case "application/yaml", "application/x-yaml", "text/yaml":
            do throws(ConfigurationProblem) {
                return try ConfigurationReader.document(bytes, name: "the request")
            } catch {
                throw ControlProblem(malformedYAML: error)
            }
        default:
            throw ControlProblem(415, "unsupported-media-type", "Send application/json or application/yaml.")
        }
    }

    /// The If-Match and If-None-Match conditions of the request, for an entry or for the whole configuration.
    func condition(_ section: ConfigurationSection?, _ name: String?) -> RunningConfiguration.Condition {
        let (ifMatch, ifNoneMatch) = (self.request.headers[.ifMatch], self.request.headers[.ifNoneMatch])
        return { snapshot in
            let revision: UInt64? =
                if let section { name.flatMap { snapshot.revision(of: $0, in: section) } } else { snapshot.revision }
            let current = revision.map { EntityTag(revision: $0) }
            return EntityTag.passesIfMatch(ifMatch, current) && !EntityTag.failsIfNoneMatch(ifNoneMatch, current)
        }
    }

    /// `response`, or 304 if the client has this revision (RFC 9110 §13.1.2).
    func conditional(_ response: Response, revision: UInt64) -> Response {
        let tag = EntityTag(revision: revision)
        guard EntityTag.failsIfNoneMatch(self.request.headers[.ifNoneMatch], tag) else { return response }
        return Response(status: .notModified, headers: [.eTag: tag.description])
    }
}

/// An entity tag (RFC 9110 §8.8.3): a revision number prefixed by a random number of this process, as revisions restart
/// with the process.
package struct EntityTag: Sendable, Hashable, CustomStringConvertible {
    private static let process = String(Machine.randomWords(1).first ?? 0, radix: 36)

    package let description: String

    package init(revision: UInt64) {
        self.description = "\"\(Self.process)-\(revision)\""
    }

    /// Whether the condition of an `If-None-Match` field is false (RFC 9110 §13.1.2). Its tags may be weak.
    package static func failsIfNoneMatch(_ field: String?, _ current: EntityTag?) -> Bool {
        guard let field, let current else { return false }
        if field.trimmingBlanks == "*" { return true }
        return field.split(separator: ",").contains { text in
            let tag = text.trimmingBlanks
            return (tag.hasPrefix("W/") ? String(tag.dropFirst(2)) : tag) == current.description
        }
    }

    /// Whether the condition of an `If-Match` field is true (RFC 9110 §13.1.1); also true without the field.
    /// - Parameter current: `nil` if the resource does not exist.
    package static func passesIfMatch(_ field: String?, _ current: EntityTag?) -> Bool {
        guard let field else { return true }
        guard let current else { return false }
        if field.trimmingBlanks == "*" { return true }
        // The gateway's own tags contain no comma, so splitting cannot break a tag that matches.
        return field.split(separator: ",").contains { $0.trimmingBlanks == current.description }
    }
}

extension ConfigurationDifference {
    init(_ changes: [ConfigurationChange], applied: Bool) {
        self.init {
            $0.applied = applied
            $0.changes = changes.map { ConfigurationDifferenceItem($0) }
        }
    }
}

extension ConfigurationDifferenceItem {
    fileprivate init(_ change: ConfigurationChange) {
        self.init {
            $0.resource = change.section.map { "/v1/\($0.rawValue)/\(change.name)" } ?? "/v1/configuration"
            $0.change = change.kind.rawValue
            $0.members = change.members.map { ConfigurationDifferenceMember($0, in: change.section) }
        }
    }
}

extension ConfigurationDifferenceMember {
    fileprivate init(_ member: ConfigurationChange.Member, in section: ConfigurationSection?) {
        let keys = member.path.steps.compactMap { step in
            if case .key(let name) = step { name } else { nil }
        }
        let whole = section.map { ConfigurationSchema.entry(of: $0) } ?? .section(ConfigurationSchema.whole)
        let form = whole.form(at: member.path.steps) ?? .unknown
        self.init {
            $0.pointer = member.path.pointer()
            $0.from = member.before.map { form.json($0.hidingSecrets(below: keys)) }
            $0.to = member.after.map { form.json($0.hidingSecrets(below: keys)) }
            $0.needsRestart = section == nil && member.needsRestart ? true : nil
        }
    }
}
