import ControlAPI
import GatewayConfiguration
import GatewayCore
import HTTPTypes
import HummingbirdCore
import StreamTransport
import WireText

/// `/v1/listeners`, `/v1/routes` and `/v1/upstreams`: the lists of the running configuration.
struct EntriesResource: Sendable {
    let section: ConfigurationSection
    let context: ControlContext

    private var running: RunningConfiguration { self.context.configuration }

    private var form: ConfigurationSchema.Form { ConfigurationSchema.entry(of: self.section) }

    var operations: [Operation] {
        let (section, noun) = (self.section, self.section.singularName)
        let word = noun.prefix(1).uppercased() + noun.dropFirst()
        let list = PathTemplate("/v1/\(section.rawValue)")
        let one = PathTemplate(
            "\(list)/{name}", .init("The \(noun)'s name.", example: Examples.name(of: section)))
        let bodies: [OperationDocument.Content] = [
            .init(.entry(section)), .unspecified("application/yaml", example: Examples.yaml(of: section)),
        ]
        return [
            Operation(
                "list\(word)s", .get, list, .read,
                OperationDocument(
                    "Lists all \(noun)s", headers: .ifNoneMatch,
                    responses: [
                        .init(200, "All \(noun)s", .init(.entries(section)), headers: .entityTag), .notModified,
                    ])
            ) { await self.list($0) },
            Operation(
                "create\(word)", .post, list, .configure,
                .configurationChange("Adds a \(noun)", body: bodies, responses: self.changed)
            ) { try await self.create($0) },
            Operation(
                "get\(word)", .get, one, .read,
                OperationDocument(
                    "Gets a \(noun) with its status", headers: .ifNoneMatch,
                    responses: [
                        .init(200, "The \(noun)", .init(.entry(section)), headers: .entityTag), .notModified,
                    ], problems: [404])
            ) { try await self.get($0) },
            Operation(
                "replace\(word)", .put, one, .configure,
                .configurationChange(
                    "Adds a \(noun), or replaces the one of this name", body: bodies, responses: self.changed)
            ) { try await self.replace($0) },
            Operation(
                "change\(word)", .patch, one, .configure,
                .configurationChange(
                    "Changes members of a \(noun) (RFC 7396)",
                    body: [.init(.change(section)), .init("application/merge-patch+json", .change(section))],
                    responses: self.changed)
            ) { try await self.change($0) },
            Operation(
                "delete\(word)", .delete, one, .configure,
                .configurationChange(
                    "Removes a \(noun)", body: [],
                    responses: [
                        .init(
                            200, "The difference of a dry run", .json(ConfigurationDifference.self),
                            headers: .entityTag),
                        .init(204, "Removed"),
                    ])
            ) { try await self.delete($0) },
        ]
    }

    private var changed: [OperationDocument.Response] {
        let section = self.section
        return [
            .init(
                200, "The current state, or the difference of a dry run",
                .init(.either([.entry(section), .model(ConfigurationDifference.self)])), headers: .entityTag),
            .init(
                201, "The new entry", .init(.entry(section)),
                headers: .entityTag.merging(.location) { first, _ in first }),
        ]
    }

    // MARK: Showing

    private func list(_ call: ControlCall) async -> Response {
        let snapshot = await self.running.snapshot
        let items = snapshot.document.elements(self.section).map { self.json($0) }
        let response = Response.json(
            ConfigurationEntries { $0.items = items },
            headers: [.eTag: EntityTag(revision: snapshot.revision).description])
        return call.conditional(response, revision: snapshot.revision)
    }

    private func get(_ call: ControlCall) async throws -> Response {
        let (name, snapshot) = (call.parameters["name"] ?? "", await self.running.snapshot)
        let response = try self.entry(name, in: snapshot)
        return snapshot.revision(of: name, in: self.section).map { call.conditional(response, revision: $0) }
            ?? response
    }

    private func entry(
        _ name: String, in snapshot: ConfigurationSnapshot, status: HTTPResponse.Status = .ok
    ) throws(ControlProblem) -> Response {
        guard let node = snapshot.entry(name, in: self.section),
            let revision = snapshot.revision(of: name, in: self.section)
        else { throw ControlProblem(.unknown(self.section, name)) }
        var headers: HTTPFields = [.eTag: EntityTag(revision: revision).description]
        if status == .created { headers[.location] = "/v1/\(self.section.rawValue)/\(PercentCoding.encoded(name))" }
        return .json(self.json(node), status: status, headers: headers)
    }

    /// An entry without its secrets, with its status.
    private func json(_ node: DocumentNode) -> JSONValue {
        guard let name = node["name"]?.text else { return .null }
        var entry = self.form.json(node.hidingSecrets())
        entry["status"] = self.status(of: name)
        return entry
    }

    private func status(of name: String) -> JSONValue? {
        switch self.section {
        case .listeners:
            self.context.gateway.boundListeners.first { $0.listener.name == name }.map { bound in
                ["address": .string(bound.address.description)]
            }
        case .routes: nil
        case .upstreams:
            [
                "endpoints": .array(
                    self.context.gateway.endpointSnapshots(ofUpstream: name).map { endpoint in
                        [
                            "url": .string(endpoint.url.description), "connections": .integer(endpoint.connections),
                            "ejected": .boolean(endpoint.isEjected),
                        ]
                    })
            ]
        }
    }

    // MARK: Changing

    private func create(_ call: ControlCall) async throws -> Response {
        let entry = try await self.body(call)
        return try await self.apply(.create(self.section, entry), call, status: .created)
    }

    private func replace(_ call: ControlCall) async throws -> Response {
        let name = call.parameters["name"] ?? ""
        let exists = await self.running.snapshot.revision(of: name, in: self.section) != nil
        let edit = ConfigurationEdit.put(self.section, name: name, try await self.body(call))
        return try await self.apply(edit, call, status: exists ? .ok : .created)
    }

    private func change(_ call: ControlCall) async throws -> Response {
        let edit = ConfigurationEdit.merge(
            self.section, name: call.parameters["name"] ?? "", try await self.body(call))
        return try await self.apply(edit, call)
    }

    private func delete(_ call: ControlCall) async throws -> Response {
        try await self.apply(.delete(self.section, name: call.parameters["name"] ?? ""), call, status: .noContent)
    }

    /// Reads the entry in the body. Its `status` is read-only and ignored.
    private func body(_ call: ControlCall) async throws -> DocumentNode {
        let document = try await call.document(as: self.form)
        guard case .mapping = document.content else {
            throw ControlProblem(
                422, "wrong-type", "The body must be an object with the keys of a \(self.section.singularName)."
            )
            .at(pointer: "")
        }
        return document.with("status", nil)
    }

    private func apply(
        _ edit: ConfigurationEdit, _ call: ControlCall, status: HTTPResponse.Status = .ok
    ) async throws -> Response {
        try self.context.checkNotDraining()
        let isDryRun = try call.query.boolean("dryRun") ?? false
        let name = edit.entry?.name
        // A missing entry fails If-Match (412), but the client should get 404.
        let exists = await self.running.snapshot.revision(of: name ?? "", in: self.section) != nil
        if case .put = edit {
        } else if case .create = edit {
        } else if !exists {
            throw ControlProblem(.unknown(self.section, name ?? ""))
        }
        let result = await self.running.apply(edit, isDryRun: isDryRun, if: call.condition(self.section, name))
        switch result {
        case .failure(let refusal): throw ControlProblem(refusal)
        case .success(let outcome):
            if isDryRun { return .json(ConfigurationDifference(outcome.changes, applied: false)) }
            guard status != .noContent else { return .noContent }
            return try self.entry(name ?? "", in: outcome.snapshot, status: status)
        }
    }
}
