import ControlAPI
import GatewayCore

extension DocumentNode {
    private static let depthLimit = 16
    private static let valueLimit = 50_000
    /// Keys whose values are numbers or truths where they look like them; others are text, however they look.
    private static let plainKeys: Set<String> = [
        "max-connections", "max-connections-per-client", "accept-burst", "max-header-count", "max-header-size",
        "max-tls-handshakes", "max-tls-handshake-size",
        "backlog",
        "probes", "retries", "eject-failures", "weight", "level", "window-bits", "loops", "closed-connections",
        "max-message-size", "min-size", "high", "low", "buffer", "max-transfers", "max-running", "max-body",
        "max-memory",
        "plain-and-tls", "keep-fragmentation", "pass-query", "insecure", "context-takeover", "keep-handshakes",
        "compress",
    ]

    /// What JSON says, as a document of the configuration; within the bounds that a file has.
    init(_ value: JSONValue) throws(ControlProblem) {
        var count = 0
        self = try Self.node(value, depth: 0, count: &count)
    }

    private static func node(
        _ value: JSONValue, depth: Int, count: inout Int
    ) throws(ControlProblem) -> DocumentNode {
        count += 1
        guard depth < self.depthLimit, count <= self.valueLimit else {
            throw ControlProblem(
                422, "too-large", "A configuration has at most \(self.depthLimit) levels and \(self.valueLimit) values."
            )
        }
        let content: Content
        switch value {
        case .null: content = .empty
        case .boolean(let value): content = .scalar(value ? "true" : "false")
        case .integer(let value): content = .scalar("\(value)")
        case .number(let value): content = .scalar("\(value)")
        case .string(let text): content = .scalar(text)
        case .array(let values):
            var nodes: [DocumentNode] = []
            for value in values { nodes.append(try self.node(value, depth: depth + 1, count: &count)) }
            content = .sequence(nodes)
        case .object(let members):
            var entries: [Entry] = []
            // The name comes first: it is what people look for.
            for (key, value) in members.sorted(by: {
                ($1.key == "name" ? 1 : 0, $0.key) < ($0.key == "name" ? 1 : 0, $1.key)
            }) {
                let node = try self.node(value, depth: depth + 1, count: &count)
                entries.append(Entry(key: key, origin: self.requested, value: node))
            }
            content = .mapping(entries)
        }
        return DocumentNode(content, origin: self.requested)
    }

    /// - Parameter key: behind which it stands.
    func json(behind key: String? = nil) -> JSONValue {
        switch self.content {
        case .empty: .null
        case .scalar(let text): Self.scalar(text, behind: key)
        case .sequence(let nodes): .array(nodes.map { $0.json(behind: key) })
        case .mapping(let entries):
            .object(
                Dictionary(
                    entries.map { ($0.key, $0.value.json(behind: $0.key)) }, uniquingKeysWith: { first, _ in first }))
        }
    }

    private static func scalar(_ text: String, behind key: String?) -> JSONValue {
        guard let key, self.plainKeys.contains(key) else { return .string(text) }
        if text == "true" || text == "false" { return .boolean(text == "true") }
        guard let number = Int64(text), "\(number)" == text else { return .string(text) }
        return .integer(number)
    }
}
