/// Which node of a cluster serves which slot, as one node said it, with the corrections of `MOVED` errors since.
package struct RedisSlotMap: Equatable, Sendable {
    /// Most primaries of a cluster, far above the 1000 that Redis recommends.
    package static let maximumNodes = 10_000
    private static let unassigned: UInt16 = .max

    private var primaries: [RedisEndpoint] = []
    private var indices: [RedisEndpoint: UInt16] = [:]
    /// Index of the primary for each slot.
    private var slots = [UInt16](repeating: Self.unassigned, count: RedisKeySlot.count)
    /// Whether the map should be asked for again: a node contradicted it, or slots have no node.
    package private(set) var isStale = true

    package init() {}

    package enum Problem: Error, Equatable, CustomStringConvertible {
        case mismatch(RedisTypeMismatch)
        case slotOutOfRange(Int64)
        case portOutOfRange(Int64)
        case tooManyNodes(limit: Int)

        package var description: String {
            switch self {
            case .mismatch(let mismatch): "\(mismatch) in the cluster's slots"
            case .slotOutOfRange(let slot): "the cluster's slots contain \(slot), which is none of 0 to 16383"
            case .portOutOfRange(let port): "the cluster's slots contain the port \(port)"
            case .tooManyNodes(let limit): "the cluster has more than \(limit) primaries"
            }
        }
    }

    /// Nodes that serve slots, in the order in which the map named them.
    package var nodes: [RedisEndpoint] { self.primaries }

    /// - Returns: `nil` if no node serves the slot, or `slot` is none.
    package func node(of slot: Int) -> RedisEndpoint? {
        guard self.slots.indices.contains(slot), self.slots[slot] != Self.unassigned else { return nil }
        return self.primaries[Int(self.slots[slot])]
    }

    package func node(ofKey key: some Collection<UInt8>) -> RedisEndpoint? { self.node(of: RedisKeySlot.of(key)) }

    /// A node answered that another serves the slot. It is believed, and the whole map should be asked for again.
    package mutating func moved(slot: Int, to node: RedisEndpoint) throws(Problem) {
        self.isStale = true
        try self.assign(slot...slot, to: node)
    }

    private mutating func assign(_ range: ClosedRange<Int>, to node: RedisEndpoint) throws(Problem) {
        guard range.lowerBound >= 0, range.upperBound < RedisKeySlot.count else {
            throw .slotOutOfRange(Int64(range.lowerBound < 0 ? range.lowerBound : range.upperBound))
        }
        let index: UInt16
        if let known = self.indices[node] {
            index = known
        } else {
            guard self.primaries.count < Self.maximumNodes else { throw .tooManyNodes(limit: Self.maximumNodes) }
            index = UInt16(self.primaries.count)
            self.primaries.append(node)
            self.indices[node] = index
        }
        for slot in range { self.slots[slot] = index }
    }

    private mutating func finish() {
        self.isStale = self.slots.contains(Self.unassigned)
    }

    // MARK: Replies

    /// Reads the reply of `CLUSTER SHARDS` (Redis 7 and later).
    /// - Parameters:
    ///   - asked: the node that replied: its host stands for those that the cluster does not know.
    ///   - usesTLS: whether to use the nodes' ports for TLS.
    package init(shards reply: RedisValue, asked: RedisEndpoint, usesTLS: Bool = false) throws(Problem) {
        for shard in try Self.read({ () throws(RedisTypeMismatch) in try reply.array() }) {
            let members = try Self.read { () throws(RedisTypeMismatch) in try shard.map() }
            let slots = try Self.read { () throws(RedisTypeMismatch) in try members["slots"]?.array() ?? [] }
            guard !slots.isEmpty, let primary = try Self.primary(members["nodes"], asked, usesTLS) else { continue }
            for index in stride(from: 0, to: slots.count - 1, by: 2) {
                try self.assign(try Self.range(slots[index], slots[index + 1]), to: primary)
            }
        }
        self.finish()
    }

    /// Reads the reply of `CLUSTER SLOTS`.
    /// - Parameter asked: the node that replied.
    package init(slots reply: RedisValue, asked: RedisEndpoint) throws(Problem) {
        for entry in try Self.read({ () throws(RedisTypeMismatch) in try reply.array() }) {
            let members = try Self.read { () throws(RedisTypeMismatch) in try entry.array() }
            guard members.count >= 3 else { continue }
            let node = try Self.read { () throws(RedisTypeMismatch) in try members[2].array() }
            guard node.count >= 2 else { continue }
            let host = try? node[0].nonNull?.text()
            let metadata = node.count > 3 ? try? node[3].map() : nil
            let known = Self.host([host, try? metadata?["ip"]?.text(), try? metadata?["hostname"]?.text()], asked)
            let primary = RedisEndpoint(host: known, port: try Self.port(node[1]))
            try self.assign(try Self.range(members[0], members[1]), to: primary)
        }
        self.finish()
    }

    /// The node that is the shard's primary; a failed one as well, because its slots have no other.
    private static func primary(
        _ nodes: RedisValue?, _ asked: RedisEndpoint, _ usesTLS: Bool
    ) throws(Problem) -> RedisEndpoint? {
        guard let nodes else { return nil }
        for node in try self.read({ () throws(RedisTypeMismatch) in try nodes.array() }) {
            let members = try self.read { () throws(RedisTypeMismatch) in try node.map() }
            guard let role = try? members["role"]?.text(), role == "master",
                let port = members[usesTLS ? "tls-port" : "port"]
            else { continue }
            let names = ["endpoint", "ip", "hostname"].map { name in try? members[name]?.nonNull?.text() }
            return RedisEndpoint(host: self.host(names, asked), port: try self.port(port))
        }
        return nil
    }

    /// The first name that is one: unknown ones are null, empty, or `?`.
    private static func host(_ names: [String?], _ asked: RedisEndpoint) -> String {
        names.compactMap(\.self).first { !$0.isEmpty && $0 != "?" } ?? asked.host
    }

    private static func port(_ value: RedisValue) throws(Problem) -> Int {
        let port = try self.read { () throws(RedisTypeMismatch) in try value.int() }
        guard (1...65535).contains(port) else { throw .portOutOfRange(port) }
        return Int(port)
    }

    private static func range(_ first: RedisValue, _ last: RedisValue) throws(Problem) -> ClosedRange<Int> {
        let first = try self.read { () throws(RedisTypeMismatch) in try first.int() }
        let last = try self.read { () throws(RedisTypeMismatch) in try last.int() }
        let allowed = 0..<Int64(RedisKeySlot.count)
        guard allowed.contains(first) else { throw .slotOutOfRange(first) }
        guard allowed.contains(last), first <= last else { throw .slotOutOfRange(last) }
        return Int(first)...Int(last)
    }

    private static func read<Read>(_ body: () throws(RedisTypeMismatch) -> Read) throws(Problem) -> Read {
        do {
            return try body()
        } catch {
            throw .mismatch(error)
        }
    }
}
