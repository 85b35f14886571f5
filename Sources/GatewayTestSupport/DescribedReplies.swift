import ControlAPI
import Synchronization

/// The responses that the gateway's own OpenAPI document describes.
struct DescribedReplies: Sendable {
    /// A response that the document does not describe.
    struct Undescribed: Error, CustomStringConvertible {
        let description: String
    }

    private struct Operation {
        let method: String
        let template: [Substring]
        let name: String
        /// Media types by status.
        let responses: [String: [String]]
    }

    private let operations: [Operation]

    /// - Parameter document: the response to `GET /openapi.json`.
    init(_ document: JSONValue) {
        self.operations = (document["paths"]?.members ?? []).flatMap { path in
            path.value.members.map { method in
                let responses = (method.value["responses"]?.members ?? []).map { response in
                    (response.name, (response.value["content"]?.members ?? []).map(\.name))
                }
                return Operation(
                    method: method.name.uppercased(), template: path.name.split(separator: "/"),
                    name: method.value["operationId"]?.string ?? "",
                    responses: Dictionary(uniqueKeysWithValues: responses))
            }
        }
    }

    /// - Throws: `Undescribed` if an operation of the document does not describe this status and media type.
    func check(_ method: String, _ target: String, _ reply: HTTPReply) throws {
        let path = target.prefix { $0 != "?" }.split(separator: "/", omittingEmptySubsequences: false).dropFirst()
        let method = method == "HEAD" ? "GET" : method
        let found = self.operations.first { $0.method == method && Self.matches(Array(path), $0.template) }
        guard let operation = found else { return }
        guard let media = operation.responses["\(reply.status)"] else {
            throw Undescribed(description: "\(operation.name) answers \(reply.status): \(reply.text.prefix(300))")
        }
        let type = String((reply.fields["content-type"] ?? "").prefix { $0 != ";" })
        guard reply.body.isEmpty || media.contains(type) || media.contains("*/*") else {
            throw Undescribed(description: "\(operation.name) answers \(reply.status) as \(type)")
        }
    }

    private static func matches(_ path: [Substring], _ template: [Substring]) -> Bool {
        path.count == template.count
            && zip(path, template).allSatisfy { segment, pattern in
                guard let end = pattern.firstIndex(of: "}"), pattern.first == "{" else { return segment == pattern }
                let suffix = pattern[pattern.index(after: end)...]
                return segment.hasSuffix(suffix) && !segment.isEmpty && !segment.dropLast(suffix.count).contains(":")
            }
    }
}

extension LoopbackGateway {
    private static let described = Mutex<DescribedReplies?>(nil)

    /// Sends a request to the control plane on a connection of its own, and checks the response against the gateway's
    /// OpenAPI document.
    /// - Parameters:
    ///   - json: the body, as `application/json` unless `fields` name another type.
    package func request(
        _ method: String, _ target: String, _ json: String? = nil, fields: [String: String] = [:]
    ) async throws -> HTTPReply {
        var fields = fields
        if json != nil { fields["Content-Type"] = fields["Content-Type"] ?? "application/json" }
        let reply = try await HTTPExchange.run(
            self.control, method, target, fields: fields, body: Array((json ?? "").utf8))
        try await self.described().check(method, target, reply)
        return reply
    }

    package func get(_ target: String, fields: [String: String] = [:]) async throws -> HTTPReply {
        try await self.request("GET", target, fields: fields)
    }

    package func post(_ target: String, _ json: String? = nil, fields: [String: String] = [:]) async throws
        -> HTTPReply
    {
        try await self.request("POST", target, json, fields: fields)
    }

    /// Opens a connection.
    /// - Returns: its id.
    package func open(_ url: String, more: String = "") async throws -> String {
        let reply = try await self.post("/v1/connections", #"{"url":"\#(url)"\#(more)}"#)
        guard reply.status == 201, let id = reply.json["id"]?.string else {
            throw DescribedReplies.Undescribed(description: "opening \(url): \(reply.text)")
        }
        return id
    }

    private func described() async throws -> DescribedReplies {
        if let known = Self.described.withLock({ $0 }) { return known }
        let document = DescribedReplies(try await HTTPExchange.run(self.control, "GET", "/openapi.json").json)
        Self.described.withLock { $0 = document }
        return document
    }
}

extension HTTPReply {
    /// A problem document in short: status, code, and the place of each error, like `422 invalid-value /url`; the whole
    /// response if it is no valid problem document (RFC 9457).
    package var problem: String {
        let json = self.json
        guard self.fields["content-type"] == "application/problem+json", json["type"]?.string == "about:blank",
            json["status"]?.integer == self.status, let code = json["code"]?.string, json["title"]?.string != nil,
            json["detail"]?.string?.isEmpty == false, case .boolean? = json["retryable"]
        else { return "\(self.status) \(self.text)" }
        let places = (json["errors"]?.items ?? []).map { $0["pointer"]?.string ?? $0["parameter"]?.string ?? "-" }
        return (["\(self.status)", code] + places).joined(separator: " ")
    }

    package var detail: String { self.json["detail"]?.string ?? "" }
}
