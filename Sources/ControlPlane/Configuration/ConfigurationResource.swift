import ControlAPI
import GatewayCore
import HTTPTypes
import Hummingbird
import HummingbirdCore
import NIOCore

/// `/v1/configuration`: everything that runs, in the form of the file.
struct ConfigurationResource: Sendable {
    static let bodyLimit = ConfigurationReader.maximumFileSize

    let context: ControlContext

    var operations: [Operation] {
        let path = "/v1/configuration"
        return [
            Operation("getConfiguration", .get, path, .configure, parameters: ["format", "secrets"]) {
                try await self.get($0)
            },
            Operation(
                "replaceConfiguration", .put, path, .configure, parameters: ["dryRun"], bodyLimit: Self.bodyLimit,
                isSlow: true
            ) {
                try await self.replace($0)
            },
            Operation("reloadConfiguration", .post, path + ":reload", .configure, parameters: ["dryRun"], isSlow: true)
            {
                try await self.reload($0)
            },
        ]
    }

    /// As JSON, or as YAML that can be put into a file.
    func get(_ call: ControlCall) async throws -> Response {
        let snapshot = await self.context.configuration.snapshot
        let isWhole = try call.query.boolean("secrets") ?? false
        let document = isWhole ? snapshot.document : snapshot.document.hidingSecrets()
        let headers: HTTPFields = [.eTag: EntityTag(revision: snapshot.revision).description]
        guard try self.wantsYAML(call) else {
            let response = Response.json(
                JSONBody.encode(ConfigurationSchema.Form.section(ConfigurationSchema.whole).json(document)),
                headers: headers)
            return call.unlessKnown(response, revision: snapshot.revision)
        }
        guard let text = YAMLText.text(of: document) else {
            throw ControlProblem(500, "internal-fault", "The configuration could not be written as YAML.")
        }
        var fields = headers
        fields[.contentType] = "application/yaml"
        fields[.cacheControl] = "no-store"
        let body = ResponseBody(byteBuffer: ByteBuffer(string: text))
        return call.unlessKnown(
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
            throw ControlProblem(400, "invalid-parameter", "format is to be json or yaml.").at(parameter: "format")
        }
    }

    func replace(_ call: ControlCall) async throws -> Response {
        try self.context.refuseWhileDraining()
        let document = try await call.document(as: .section(ConfigurationSchema.whole))
        let isDryRun = try call.query.boolean("dryRun") ?? false
        let result = await self.context.configuration.apply(
            .replace(document), isDryRun: isDryRun, if: call.condition(nil, nil))
        return try self.answer(result, isDryRun)
    }

    func reload(_ call: ControlCall) async throws -> Response {
        try self.context.refuseWhileDraining()
        let isDryRun = try call.query.boolean("dryRun") ?? false
        let result = await self.context.configuration.reload(isDryRun: isDryRun, if: call.condition(nil, nil))
        return try self.answer(result, isDryRun)
    }

    private func answer(
        _ result: Result<RunningConfiguration.Outcome, ConfigurationRefusal>, _ isDryRun: Bool
    ) throws(ControlProblem) -> Response {
        switch result {
        case .failure(let refusal): throw ControlProblem(refusal)
        case .success(let outcome):
            var headers: HTTPFields = [:]
            if !isDryRun { headers[.eTag] = EntityTag(revision: outcome.snapshot.revision).description }
            return .json(
                JSONBody.encode(ConfigurationDifference(outcome.changes, applied: !isDryRun)), headers: headers)
        }
    }
}

extension ControlContext {
    /// Nothing is changed any more in a gateway that ends.
    func refuseWhileDraining() throws(ControlProblem) {
        guard self.phase != .draining else { throw ControlProblem.draining }
    }
}
