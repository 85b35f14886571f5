import GatewayCore
import HTTPTypes
import HummingbirdCore
import Rooms
import WireText

/// The server API in a cluster: what concerns clients reaches those of all nodes.
extension ServerAPI {
    /// Performs a method, also on the other nodes where it concerns their clients.
    func perform(_ method: Method, _ request: ServerAPIRequest, _ call: ControlCall) async -> Answer {
        guard let cluster = self.cluster, call.forwardedBy == nil, let spread = FanOut(method) else {
            return await self.perform(method, request)
        }
        var forwarded = NodeRequest(.post, ServerAPIResource.prefix + method.rawValue, by: call.caller)
        forwarded.body = request.text
        let limit = NodeCaller.bodyLimit(cluster.limits)
        guard forwarded.body.count <= limit else {
            return .failure(
                Failure(.limitExceeded, "limit exceeded: a request that other nodes get has at most \(limit) bytes"))
        }
        let own = await self.perform(method, request)
        guard case .success(let result) = own else { return own }
        let nodes = NodeCaller(cluster: cluster)
        let others = await nodes.nodeNames().filter { $0 != nodes.own }
        guard !others.isEmpty else { return own }
        let outcomes = await nodes.gather(from: others, timeout: cluster.limits.gatherTimeout) { [forwarded] _ in
            forwarded
        }
        do throws(Failure) {
            switch spread {
            case .act:
                for outcome in outcomes { _ = try Self.result(outcome) }
                return own
            case .channels: return .success(try Self.channels(result, outcomes))
            case .info: return .success(Self.info(result, outcomes))
            }
        } catch {
            return .failure(error)
        }
    }

    /// How the answers of several nodes become one.
    private enum FanOut {
        /// All must succeed.
        case act
        case channels, info

        /// `nil` for a method that one node performs for all.
        init?(_ method: Method) {
            switch method {
            case .subscribe, .unsubscribe, .disconnect, .refresh: self = .act
            case .channels: self = .channels
            case .info: self = .info
            case .publish, .broadcast, .presence, .presenceStats, .history, .historyRemove, .rpc: return nil
            }
        }
    }

    /// The result of another node.
    private static func result(_ outcome: NodeCaller.Outcome) throws(Failure) -> [UInt8] {
        guard case .success(let reply) = outcome.result, reply.isSuccess else {
            var reason = "the node \(outcome.node.prefix(64)) did not answer"
            if case .failure(let problem) = outcome.result { reason = problem.detail }
            throw Failure(.internal, "internal server error: \(reason)")
        }
        var result: [UInt8]?
        var failure: (code: UInt64, message: String)?
        var reader = JSONReader(reply.body)
        try? reader.readObject { (name, value) throws(JSONSyntaxError) in
            switch name {
            case "result": result = try value.readRaw()
            case "error":
                var found: (code: UInt64, message: String) = (0, "")
                try value.readObject { (name, value) throws(JSONSyntaxError) in
                    switch name {
                    case "code": found.code = try value.readUInt64()
                    case "message": found.message = try value.readString()
                    default: try value.skipValue()
                    }
                }
                failure = found
            default: try value.skipValue()
            }
        }
        if let failure { throw Failure(code: UInt32(clamping: failure.code), message: failure.message) }
        guard let result else { throw Failure(.internal) }
        return result
    }

    // MARK: Reading

    private static func channels(_ own: [UInt8], _ outcomes: [NodeCaller.Outcome]) throws(Failure) -> [UInt8] {
        var members: [String: Int] = [:]
        var results = [own]
        for outcome in outcomes { results.append(try Self.result(outcome)) }
        for result in results {
            for (name, count) in Self.members(result) { members[name] = [members[name] ?? 0, count].sumOfCounts() }
        }
        guard members.count <= Self.listLimit else {
            throw Failure(.limitExceeded, "limit exceeded: more than \(Self.listLimit) channels; use a pattern")
        }
        var text = JSONText()
        text.beginObject()
        text.key("channels")
        text.beginObject()
        for (name, count) in members.sorted(by: { $0.key < $1.key }) {
            text.escapedKey(name)
            text.beginObject()
            text.member("num_clients", count)
            text.endObject()
        }
        text.endObject()
        text.endObject()
        return text.bytes
    }

    /// The members of each channel of a result.
    private static func members(_ result: [UInt8]) -> [(name: String, count: Int)] {
        var found: [(name: String, count: Int)] = []
        var reader = JSONReader(result)
        try? reader.readObject { (name, value) throws(JSONSyntaxError) in
            guard name == "channels" else { return _ = try value.skipValue() }
            try value.readObject { (channel, value) throws(JSONSyntaxError) in
                try value.readObject { (name, value) throws(JSONSyntaxError) in
                    guard name == "num_clients" else { return _ = try value.skipValue() }
                    found.append((channel.text, max(0, min(try value.readInt(), 1 << 40))))
                }
            }
        }
        return found
    }

    /// Nodes that do not answer are left out.
    private static func info(_ own: [UInt8], _ outcomes: [NodeCaller.Outcome]) -> [UInt8] {
        let results = [own] + outcomes.compactMap { try? Self.result($0) }
        var text = JSONText()
        text.beginObject()
        text.key("nodes")
        text.beginArray()
        for result in results {
            var reader = JSONReader(result)
            try? reader.readObject { (name, value) throws(JSONSyntaxError) in
                guard name == "nodes" else { return _ = try value.skipValue() }
                try value.readArray { (node) throws(JSONSyntaxError) in text.raw(try node.readRaw()) }
            }
        }
        text.endArray()
        text.endObject()
        return text.bytes
    }
}

extension ServerAPIRequest {
    /// The parameters of methods that concern clients or list channels, as JSON.
    fileprivate var text: [UInt8] {
        var text = JSONText()
        text.beginObject()
        for (key, value) in [
            ("channel" as JSONKey, self.channel), ("user", self.user), ("client", self.client),
            ("session", self.session), ("pattern", self.pattern),
        ] where !value.isEmpty { text.member(key, value) }
        for (key, binaryKey, payload) in [
            ("info" as JSONKey, "b64info" as JSONKey, self.info), ("data", "b64data", self.data),
        ] {
            switch payload {
            case .json(let value)?:
                text.key(key)
                text.raw(value)
            case .binary(let bytes)?: text.member(binaryKey, Base64.encoded(bytes))
            case nil: break
            }
        }
        if !self.whitelist.isEmpty {
            text.key("whitelist")
            text.beginArray()
            for client in self.whitelist { text.string(client) }
            text.endArray()
        }
        if let disconnect {
            text.key("disconnect")
            text.beginObject()
            text.member("code", disconnect.code)
            text.member("reason", disconnect.reason)
            text.endObject()
        }
        if let since {
            text.key("recover_since")
            text.beginObject()
            text.member("offset", since.offset)
            text.member("epoch", since.epoch)
            text.endObject()
        }
        text.member("expired", self.isExpired ? true : nil)
        text.member("expire_at", self.expiry)
        text.endObject()
        return text.bytes
    }
}
