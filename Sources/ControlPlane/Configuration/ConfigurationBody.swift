import ControlAPI
import GatewayCore
import HTTPTypes
import Hummingbird
import HummingbirdCore
import NIOCore

extension ControlCall {
    /// The body as a part of a configuration: JSON, or YAML as in the file.
    /// - Parameter form: that of the part.
    /// - Throws: `ControlProblem` for what is neither.
    func document(as form: ConfigurationSchema.Form) async throws -> DocumentNode {
        try self.refuseCompressed()
        var buffer = try await self.body()
        let bytes = buffer.readBytes(length: buffer.readableBytes) ?? []
        switch self.mediaType {
        case nil, "application/json", "application/merge-patch+json":
            return try DocumentNode(try JSONBody.value(bytes), as: form)
        case "application/yaml", "application/x-yaml", "text/yaml":
            do throws(ConfigurationProblem) {
                return try ConfigurationReader.document(bytes, name: "the request")
            } catch {
                throw ControlProblem(400, "malformed-yaml", error.description)
            }
        default:
            throw ControlProblem(415, "unsupported-media-type", "Send application/json or application/yaml.")
        }
    }

    /// Whether the request passes on what is there now.
    func condition(_ section: ConfigurationSection?, _ name: String?) -> RunningConfiguration.Condition {
        let (wanted, unwanted) = (self.request.headers[.ifMatch], self.request.headers[.ifNoneMatch])
        return { snapshot in
            let revision: UInt64? =
                if let section { name.flatMap { snapshot.revision(of: $0, in: section) } } else { snapshot.revision }
            let current = revision.map { EntityTag(revision: $0) }
            return EntityTag.matches(wanted, current) && !EntityTag.excludes(unwanted, current)
        }
    }

    /// `response`, or that it is known already (RFC 9110 §13.1.2).
    func unlessKnown(_ response: Response, revision: UInt64) -> Response {
        let tag = EntityTag(revision: revision)
        guard EntityTag.excludes(self.request.headers[.ifNoneMatch], tag) else { return response }
        return Response(status: .notModified, headers: [.eTag: tag.description])
    }
}
