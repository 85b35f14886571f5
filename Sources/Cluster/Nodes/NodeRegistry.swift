import RedisEngine
import WireText

/// The nodes of a cluster in Redis: a hash with the record of each, and a sorted set with the end of each lease, in
/// milliseconds of Redis' clock. All keys have one hash tag, so that one node of a Redis Cluster has them.
struct NodeRegistry {
    /// Nodes in one reply, and expired ones that a renewal removes.
    static let maximumNodes = 1000

    /// Sets record and lease, unless another instance has a valid lease of this name.
    static let renew = RedisScript(
        """
        local time = redis.call('TIME')
        local now = time[1] * 1000 + math.floor(time[2] / 1000)
        local lease = tonumber(redis.call('ZSCORE', KEYS[2], ARGV[1]) or '0')
        local record = redis.call('HGET', KEYS[1], ARGV[1])
        local holder = record and string.match(record, '^[^\\n]*')
        if lease > now and holder and holder ~= ARGV[2] then return {0, time[1], time[2], holder} end
        redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
        redis.call('ZADD', KEYS[2], string.format('%.0f', now + ARGV[4]), ARGV[1])
        local gone = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', string.format('%.0f', now), 'LIMIT', 0, 100)
        for _, name in ipairs(gone) do
            redis.call('ZREM', KEYS[2], name)
            redis.call('HDEL', KEYS[1], name)
        end
        return {1, time[1], time[2]}
        """)

    /// Removes record and lease of this instance.
    static let remove = RedisScript(
        """
        local record = redis.call('HGET', KEYS[1], ARGV[1])
        if record and string.match(record, '^[^\\n]*') == ARGV[2] then
            redis.call('ZREM', KEYS[2], ARGV[1])
            redis.call('HDEL', KEYS[1], ARGV[1])
        end
        return 1
        """)

    /// Records with a valid lease, and the milliseconds that are left of it.
    static let list = RedisScript(
        """
        local time = redis.call('TIME')
        local now = time[1] * 1000 + math.floor(time[2] / 1000)
        local first = string.format('(%.0f', now)
        local leases = redis.call('ZRANGEBYSCORE', KEYS[2], first, '+inf', 'WITHSCORES', 'LIMIT', 0, 1000)
        local reply = {}
        for index = 1, #leases, 2 do
            local record = redis.call('HGET', KEYS[1], leases[index])
            if record then
                reply[#reply + 1] = record
                reply[#reply + 1] = tonumber(leases[index + 1]) - now
            end
        end
        return reply
        """)

    static let scripts = [renew, remove, list]

    let prefix: String

    var keys: [[UInt8]] { ["records", "leases"].map { Array("\(self.prefix):{nodes}:\($0)".utf8) } }
    /// Channel of announcements.
    var channelOfAll: [UInt8] { Array("\(self.prefix):{nodes}:all".utf8) }
    func channel(of node: String) -> [UInt8] { Array("\(self.prefix):{nodes}:node:\(node)".utf8) }

    /// - Returns: records in the order of their names; those that cannot be read are left out.
    static func records(_ reply: RedisValue) throws(RedisTypeMismatch) -> [NodeRecord] {
        let values = try reply.array()
        var records: [NodeRecord] = []
        for index in stride(from: 0, to: values.count - 1, by: 2) {
            guard let text = try? values[index].text(), let lease = try? values[index + 1].int(),
                let record = NodeRecord(text, remainingLease: .milliseconds(lease))
            else { continue }
            records.append(record)
        }
        return records.sorted { $0.name < $1.name }
    }
}

extension NodeRecord {
    /// The first line of the record: what the scripts compare.
    var holder: String { PercentCoding.encoded(self.instance) }

    /// Lines: the instance first, which the scripts compare. Later versions add lines at the end.
    var encoded: String {
        let texts = [self.instance, self.name, self.version].map { PercentCoding.encoded($0) }
        let load = self.load
        let clock = self.clockDifference.map { "\($0 / .microseconds(1))" } ?? ""
        let lines =
            texts + ["\(self.startTime)", "\(load.connections)", "\(load.rooms)", "\(load.clients)"]
            + ["\(load.processorShare)", load.isDraining ? "1" : "0", clock]
        return lines.joined(separator: "\n")
    }

    /// - Returns: `nil` unless `text` was encoded by this or a later version.
    init?(_ text: String, remainingLease: Duration) {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        guard lines.count >= 10, let instance = PercentCoding.decodedText(lines[0]),
            let name = PercentCoding.decodedText(lines[1]), let version = PercentCoding.decodedText(lines[2]),
            let startTime = Int64(lines[3]), let connections = Int(lines[4]), let rooms = Int(lines[5]),
            let clients = Int(lines[6]), let share = Double(lines[7]), share.isFinite
        else { return nil }
        self.init(
            name: name, instance: instance, version: version, startTime: startTime, remainingLease: remainingLease)
        self.load.connections = connections
        self.load.rooms = rooms
        self.load.clients = clients
        self.load.processorShare = share
        self.load.isDraining = lines[8] == "1"
        self.clockDifference = Double(lines[9]).flatMap { $0.isFinite ? .microseconds($0) : nil }
    }
}
