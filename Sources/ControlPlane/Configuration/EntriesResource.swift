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
        let list = "/v1/\(self.section.rawValue)"
        let one = "\(list)/{name}"
        let word = self.section.singularName.prefix(1).uppercased() + self.section.singularName.dropFirst()
        return [
            Operation("list\(word)s", .get, list, .read, ConfigurationDocuments.list(self.section)) {
                await self.list($0)
            },
            Operation("create\(word)", .post, list, .configure, ConfigurationDocuments.create(self.section)) {
                try await self.create($0)
            },
            Operation("get\(word)", .get, one, .read, ConfigurationDocuments.get(self.section)) {
                try await self.get($0)
            },
            Operation("replace\(word)", .put, one, .configure, ConfigurationDocuments.replace(self.section)) {
                try await self.replace($0)
            },
            Operation("change\(word)", .patch, one, .configure, ConfigurationDocuments.change(self.section)) {
                try await self.change($0)
            },
            Operation("delete\(word)", .delete, one, .configure, ConfigurationDocuments.delete(self.section)) {
                try await self.delete($0)
            },
        ]
    }

    // MARK: Showing

    private func list(_ call: ControlCall) async -> Response {
        let snapshot = await self.running.snapshot
        let items = snapshot.document.elements(self.section).map { self.json($0) }
        let response = Response.json(
            ConfigurationEntries(items: items),
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
        guard case .object(var members) = self.form.json(node.hidingSecrets()), let name = node["name"]?.text else {
            return .null
        }
        members["status"] = self.status(of: name)
        return .object(members)
    }

    private func status(of name: String) -> JSONValue? {
        switch self.section {
        case .listeners:
            self.context.gateway.boundListeners.first { $0.listener.name == name }.map { bound in
                .object(["address": .string(bound.address.description)])
            }
        case .routes: nil
        case .upstreams:
            .object([
                "endpoints": .array(
                    self.context.gateway.endpointSnapshots(ofUpstream: name).map { endpoint in
                        .object([
                            "url": .string(endpoint.url.description),
                            "connections": .integer(Int64(endpoint.connections)),
                            "ejected": .boolean(endpoint.isEjected),
                        ])
                    })
            ])
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
