import RedisEngine

/// A value that the nodes of a cluster keep together, until it ends.
package struct KeptValue: Sendable, Equatable {
    package var key: [UInt8]
    /// Of two values with one key, the one with the greater version is kept; then the one that ends later. At most 2^53.
    package var version: Int64
    /// Milliseconds since 1970.
    package var endsAt: Int64
    package var bytes: [UInt8]

    package init(key: [UInt8], version: Int64, endsAt: Int64, bytes: [UInt8]) {
        self.key = key
        self.version = version
        self.endsAt = endsAt
        self.bytes = bytes
    }
}

/// The kept values in Redis: a hash with version, end and bytes of each, and a sorted set with the ends, by the clocks of
/// the nodes. Both expire with the last value.
struct KeptValues {
    /// Fields of the hash in one reply, unless Redis has it in one piece.
    private static let pageSize = 500

    static let keep = RedisScript(
        """
        local now, latest, limit = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
        -- A node whose clock is ahead must not remove what others keep.
        local past = string.format('%.0f', math.min(now, redis.call('TIME')[1] * 1000))
        local ended = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', past, 'LIMIT', 0, 1000)
        for _, key in ipairs(ended) do
            redis.call('ZREM', KEYS[2], key)
            redis.call('HDEL', KEYS[1], key)
        end
        for index = 4, #ARGV, 4 do
            local key, version, ends = ARGV[index], tonumber(ARGV[index + 1]), tonumber(ARGV[index + 2])
            local known = redis.call('HGET', KEYS[1], key)
            local knownVersion, knownEnd = string.match(known or '', '^(%d+) (%d+) ')
            knownVersion, knownEnd = tonumber(knownVersion or 0), tonumber(knownEnd or 0)
            local replaces = knownVersion > latest or version > knownVersion
                or version == knownVersion and ends > knownEnd
            if replaces and ends > now and (known or redis.call('HLEN', KEYS[1]) < limit) then
                local value = ARGV[index + 1] .. ' ' .. ARGV[index + 2] .. ' ' .. ARGV[index + 3]
                redis.call('HSET', KEYS[1], key, value)
                redis.call('ZADD', KEYS[2], ARGV[index + 2], key)
            end
        end
        local last = redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')
        if last[2] then
            local latestEnd = string.format('%.0f', math.min(tonumber(last[2]), 1e15))
            redis.call('PEXPIREAT', KEYS[1], latestEnd)
            redis.call('PEXPIREAT', KEYS[2], latestEnd)
        end
        return 1
        """)

    let prefix: String

    var keys: [[UInt8]] { ["kept", "kept-ends"].map { Array("\(self.prefix):{nodes}:\($0)".utf8) } }

    static func arguments(_ values: [KeptValue], now: Int64, latest: Int64, limit: Int) -> [RedisArgument] {
        [.number(Int(now)), .number(Int(latest)), .number(limit)]
            + values.flatMap { value -> [RedisArgument] in
                [.bytes(value.key), .number(Int(value.version)), .number(Int(value.endsAt)), .bytes(value.bytes)]
            }
    }

    func scan(from cursor: String) -> RedisCommand {
        RedisCommand("HSCAN", .bytes(self.keys[0]), .text(cursor), "COUNT", .number(Self.pageSize))
    }

    /// - Returns: the bytes of values, and the cursor of the next page, `0` after the last one; `nil` for another reply.
    static func page(_ reply: RedisValue) -> (values: [[UInt8]], next: String)? {
        guard let parts = try? reply.array(), parts.count == 2, let next = try? parts[0].text(),
            let fields = try? parts[1].array()
        else { return nil }
        let values = stride(from: 1, to: fields.count, by: 2).compactMap { index -> [UInt8]? in
            let parts = (try? fields[index].bytes())?.split(
                separator: UInt8(ascii: " "), maxSplits: 2, omittingEmptySubsequences: false)
            return parts.flatMap { $0.count == 3 ? Array($0[2]) : nil }
        }
        return (values, next)
    }
}
