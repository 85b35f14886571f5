import ByteKernels
import Cluster
import RedisEngine
import Rooms
import WireText

/// Names of a room's keys and channel in Redis. All have one hash tag, so that a cluster keeps them on one server.
struct RoomKeys {
    /// Hash: epoch `e`, newest offset `o`, offset after which the epoch began `f`, run of the server that it belongs to `s`,
    /// bytes of the stream `b`, number of removals `d`. After a space, `f` names its epoch: older versions begin another one
    /// and leave `f` as it is.
    let meta: [UInt8]
    /// Stream: the publications, by offset.
    let stream: [UInt8]
    /// Hash: clients in the room.
    let presence: [UInt8]
    /// Sorted set: when each of them expires, in milliseconds since 1970 by Redis' clock.
    let presenceExpiry: [UInt8]
    let channel: [UInt8]
    private let base: String

    init(prefix: String, room: String) {
        // Braces in a name must not end the hash tag.
        let base = "\(prefix):room:{\(PercentCoding.encoded(room))}"
        self.base = base
        func key(_ suffix: String) -> [UInt8] { Array("\(base)\(suffix)".utf8) }
        self.meta = key(":meta")
        self.stream = key(":stream")
        self.presence = key(":presence")
        self.presenceExpiry = key(":expiry")
        self.channel = key("")
    }

    /// Result of a publication with an idempotency key.
    func idempotency(_ key: String) -> [UInt8] { Array("\(self.base):once:\(key)".utf8) }

    /// Sorted set: connections of a user, and when each expires.
    static func user(_ user: String, prefix: String) -> [UInt8] {
        Array("\(prefix):user:{\(PercentCoding.encoded(user))}".utf8)
    }
}

/// Scripts: each is one atomic step in Redis.
package enum RoomScripts {
    package static let all = [publish, read, startNewEpoch, remove, enter, leave, list, register]

    /// Memory of an entry besides its data, in bytes, as `RoomHistory` counts it.
    package static let entryOverhead = 256

    /// Of a server that keeps an append-only file, and that was never a replica.
    private static let appendOnlyMarks = ["aof_enabled:1", "master_replid2:0000000000000000000000000000000000000000"]
    /// Ends the name of such a server's run.
    private static let appendOnlySuffix = "+"

    /// - Parameter info: the reply of `INFO`.
    /// - Returns: the run as the scripts know it; empty if the server does not tell.
    static func run(info: String) -> String {
        let lines = info.split(separator: "\r\n")
        guard let run = lines.first(where: { $0.hasPrefix("run_id:") })?.dropFirst("run_id:".count) else { return "" }
        let isAppendOnly = Self.appendOnlyMarks.allSatisfy { mark in lines.contains { $0 == mark } }
        return isAppendOnly ? run + Self.appendOnlySuffix : String(run)
    }

    static func isAppendOnly(run: String) -> Bool { run.hasSuffix(Self.appendOnlySuffix) }

    /// A message of a room for the nodes, as the scripts publish it.
    /// - Parameter position: of a publication that is kept.
    static func message(_ envelope: [UInt8], at position: StreamPosition = StreamPosition()) -> [UInt8] {
        Array("\(position.offset) \(position.epoch) ".utf8) + envelope
    }

    /// - Parameter isSent: whether the script published anything, by its reply.
    static func announcement(
        of envelope: [UInt8], in keys: RoomKeys, if isSent: @escaping (RedisValue) -> Bool = { _ in true }
    ) -> RedisAnnouncement {
        RedisAnnouncement(on: keys.channel) { isSent($0) && !envelope.isEmpty ? Self.message(envelope) : nil }
    }

    /// Finds the stream's epoch, and begins another one if it belongs to another run of the server. The publications that
    /// are there remain, and offsets continue. Streams of nodes that did not store the run keep their epoch.
    ///
    /// After a failover, or a restart, the server may lack publications that were acknowledged, and would give their offsets
    /// again. So an epoch belongs to one run of one server. It outlasts a restart if the server had, and has, an append-only
    /// file, was never a replica, and the configuration says that the file is complete: with `appendfsync everysec` it
    /// lacks the last second after a crash of the machine, which the server does not tell. If the server does not tell its
    /// run, failovers are not noticed here.
    ///
    /// Nodes may know another run than the server's, because a server can get an append-only file at any time. What a node
    /// knows is used only if it is also the stream's: else the server is asked, which takes about 10 µs.
    ///
    /// A new stream is written before what is left of a former one is deleted: after a command that needs no memory, a
    /// server whose memory is full accepts all others of a script.
    /// - Parameters:
    ///   - new: number of the argument with an epoch to begin.
    ///   - known: of that with the run that the node knows, or nothing; the next one is `1` if append-only files are complete.
    private static func epoch(new: Int, known: Int) -> String {
        """
        local meta = redis.call('HMGET', KEYS[1], 'e', 's', 'o', 'r')
        -- Older versions keep the run in r.
        local former = meta[2] or (meta[4] == 'durable' and '\(Self.appendOnlySuffix)') or meta[4] or ''
        local epoch, run, id = meta[1], ARGV[\(known)], nil
        if not epoch or run == '' or former ~= run then
          local function info(section)
            local text = redis.pcall('INFO', section)
            return type(text) == 'string' and text or ''
          end
          id = string.match(info('server'), 'run_id:(%x+)')
          local isAppendOnly = id and string.find(info('persistence'), '\(Self.appendOnlyMarks[0])', 1, true)
            and string.find(info('replication'), '\(Self.appendOnlyMarks[1])', 1, true)
          run = isAppendOnly and id .. '\(Self.appendOnlySuffix)' or id or run
        end
        if not epoch then
          epoch = ARGV[\(new)]
          redis.call('HSET', KEYS[1], 'e', epoch, 'o', 0, 'f', '0 ' .. epoch, 's', run)
          redis.call('HDEL', KEYS[1], 'b', 'd')
          redis.call('DEL', KEYS[2])
        elseif run ~= '' and former ~= run then
          local function isAppendOnly(text) return string.sub(text, -1) == '\(Self.appendOnlySuffix)' end
          local isSame = former == '' or former == id
            or (ARGV[\(known + 1)] == '1' and isAppendOnly(former) and isAppendOnly(run))
          if not isSame then
            epoch = ARGV[\(new)]
            redis.call('HSET', KEYS[1], 'f', (meta[3] or 0) .. ' ' .. epoch)
          end
          redis.call('HSET', KEYS[1], 'e', epoch, 's', run)
        end
        """
    }

    /// Appends to the stream, trims it, and publishes. With an idempotency key only once.
    ///
    /// Subscribers get the message last: a server whose memory is full refuses the first command that would need more, and
    /// nothing has been done then.
    ///
    /// Keys: meta and stream if it is kept, then the result of the idempotency key if there is one. No others: while a slot
    /// migrates, a server executes nothing with several keys of which one does not exist. Arguments: envelope, epoch of a
    /// new stream, entries kept, bytes kept, milliseconds until the stream expires, until meta expires, channel, command for
    /// publishing, milliseconds that the idempotency key lasts or 0, run of the server or empty, `1` if append-only files
    /// are complete, newest position that the node knows: epoch or empty, offset. If the server has forgotten it, another
    /// epoch begins, as its offsets must not be given again. Returns: 1 if the key was used before, offset, epoch.
    package static let publish = RedisScript(
        """
        local once, result = tonumber(ARGV[9]), KEYS[#KEYS]
        if once > 0 then
          local former = redis.call('HMGET', result, 'o', 'e')
          if former[1] then return {1, former[1], former[2]} end
        end
        local function number(value) return string.format('%.0f', value) end
        local size, offset, stream = tonumber(ARGV[3]), '0', ''
        if size > 0 then
          \(Self.epoch(new: 2, known: 10))
          if epoch == ARGV[12] and tonumber(meta[3] or 0) < tonumber(ARGV[13]) then
            epoch = ARGV[2]
            redis.call('HSET', KEYS[1], 'e', epoch, 'f', (meta[3] or 0) .. ' ' .. epoch)
          end
          offset = number(redis.call('HINCRBY', KEYS[1], 'o', 1))
          local added = redis.pcall('XADD', KEYS[2], offset .. '-0', 'd', ARGV[1])
          if type(added) == 'table' and added.err then
            epoch, offset = ARGV[2], '1'
            redis.call('DEL', KEYS[1], KEYS[2])
            redis.call('HSET', KEYS[1], 'e', epoch, 'o', 1, 'f', '0 ' .. epoch, 's', run)
            redis.call('XADD', KEYS[2], '1-0', 'd', ARGV[1])
          end
          local length, cost = redis.call('XLEN', KEYS[2]), #ARGV[1] + \(entryOverhead)
          if length == 1 then redis.call('HSET', KEYS[1], 'b', 0) end
          local bytes = redis.call('HINCRBY', KEYS[1], 'b', cost)
          local rounds = 0
          while rounds < 1000 and (length > size or (length > 1 and bytes > tonumber(ARGV[4]))) do
            local first = redis.call('XRANGE', KEYS[2], '-', '+', 'COUNT', 1)[1]
            redis.call('XDEL', KEYS[2], first[1])
            bytes = redis.call('HINCRBY', KEYS[1], 'b', -(#first[2][2] + \(entryOverhead)))
            length = length - 1
            rounds = rounds + 1
          end
          redis.call('PEXPIRE', KEYS[2], ARGV[5])
          redis.call('PEXPIRE', KEYS[1], ARGV[6])
          stream = epoch
        end
        if once > 0 then
          redis.call('HSET', result, 'o', offset, 'e', stream)
          redis.call('PEXPIRE', result, once)
        end
        redis.call(ARGV[8], ARGV[7], offset .. ' ' .. stream .. ' ' .. ARGV[1])
        return {0, offset, stream}
        """)

    /// Reads a page of the stream; begins a stream if there is none.
    ///
    /// The page ends when it is full; it has at least one entry if there is one. Few entries are read at a time, because a
    /// step may read entries that the page does not hold.
    ///
    /// Keys: meta, stream. Arguments: lowest and highest offset as stream identifiers, entries at most, `1` for the newest
    /// first, epoch of a new stream, milliseconds that meta lasts at least, epoch to which the lowest offset belongs or
    /// empty: of another stream all is read; run of the server or empty, `1` if append-only files are complete, cost of the
    /// page at most, in bytes. Returns: epoch, newest offset, entries, number of removals so far, 1 if the page is full,
    /// identifier of the oldest entry of the whole stream or empty, milliseconds until the stream expires or below 0, offset
    /// after which the epoch began or empty.
    package static let read = RedisScript(
        """
        \(Self.epoch(new: 5, known: 8))
        if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[6]) then redis.call('PEXPIRE', KEYS[1], ARGV[6]) end
        local lowest, highest, most, left = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[10])
        if ARGV[7] ~= '' and ARGV[7] ~= epoch then lowest = '-' end
        local entries, count, step, isFull = {}, 0, 1, 0
        while count < most and isFull == 0 do
          local size, found = math.min(step, most - count)
          if ARGV[4] == '1' then
            found = redis.call('XREVRANGE', KEYS[2], highest, lowest, 'COUNT', size)
          else
            found = redis.call('XRANGE', KEYS[2], lowest, highest, 'COUNT', size)
          end
          for _, entry in ipairs(found) do
            for _, text in ipairs(entry[2]) do left = left - #text end
            left = left - \(entryOverhead)
            if left < 0 and count > 0 then
              isFull = 1
              break
            end
            count = count + 1
            entries[count] = entry
          end
          if #found < size then break end
          local last = '(' .. found[size][1]
          if ARGV[4] == '1' then highest = last else lowest = last end
          step = math.min(2 * step, 32)
        end
        local state = redis.call('HMGET', KEYS[1], 'o', 'd', 'f')
        local start, ofEpoch = string.match(state[3] or '', '^(%d+) (.*)$')
        local oldest = redis.call('XRANGE', KEYS[2], '-', '+', 'COUNT', 1)[1]
        return {epoch, state[1] or '0', entries, state[2] or '0', isFull, oldest and oldest[1] or '',
          redis.call('PTTL', KEYS[2]), ofEpoch == epoch and start or ''}
        """)

    /// Begins another epoch if acknowledged publications are missing, as after a crash of the machine of a server whose
    /// append-only file was not complete, or a failover of one that does not tell its run. The stream stays, and offsets
    /// go on.
    ///
    /// Keys: meta. Arguments: epoch, offset that was acknowledged in it, epoch to begin.
    package static let startNewEpoch = RedisScript(
        """
        local meta = redis.call('HMGET', KEYS[1], 'e', 'o')
        local offset = meta[2] or '0'
        if meta[1] ~= ARGV[1] or tonumber(offset) >= tonumber(ARGV[2]) then return 0 end
        redis.call('HSET', KEYS[1], 'e', ARGV[3], 'f', offset .. ' ' .. ARGV[3])
        return 1
        """)

    /// Removes publications, and tells the nodes. Counts it, so that a node that missed it finds out. A meta key
    /// that the server has evicted is not made again: without an epoch it would never expire.
    ///
    /// Keys: meta, stream. Arguments: offset, or 0 for all; envelope; channel; command for publishing. Returns: how many.
    package static let remove = RedisScript(
        """
        local count
        local isKnown = redis.call('EXISTS', KEYS[1]) == 1
        if ARGV[1] == '0' then
          count = redis.call('XLEN', KEYS[2])
          redis.call('DEL', KEYS[2])
          redis.call('HDEL', KEYS[1], 'b')
        else
          local found = redis.call('XRANGE', KEYS[2], ARGV[1] .. '-0', ARGV[1] .. '-0')[1]
          count = found and redis.call('XDEL', KEYS[2], ARGV[1] .. '-0') or 0
          if count == 1 and isKnown then
            redis.call('HINCRBY', KEYS[1], 'b', -(#found[2][2] + \(entryOverhead)))
          end
        end
        if count > 0 then
          if isKnown then redis.call('HINCRBY', KEYS[1], 'd', 1) end
          redis.call(ARGV[4], ARGV[3], '0  ' .. ARGV[2])
        end
        return count
        """)

    /// Clients that have expired and that one script removes, at most: Lua's `unpack` returns a limited number of values.
    private static let expiredLimit = 1000

    /// Removes clients that have expired, in `gone`, because no node removes those of one that has ended.
    ///
    /// Keys: presence, expiry. Needs `now`, in milliseconds.
    private static let removeExpired = """
        local gone = redis.call(
          'ZRANGEBYSCORE', KEYS[2], '-inf', string.format('%.0f', now), 'LIMIT', 0, \(expiredLimit))
        if #gone > 0 then
          redis.call('HDEL', KEYS[1], unpack(gone))
          redis.call('ZREM', KEYS[2], unpack(gone))
        end
        """

    /// Lets the keys last for this time at least: nodes whose `presence-time` changes have different ones for a while.
    /// - Parameter argument: number of the argument with the time, in milliseconds.
    private static func keep(for argument: Int) -> String {
        """
        for _, key in ipairs(KEYS) do
          if redis.call('PTTL', key) < tonumber(ARGV[\(argument)]) then redis.call('PEXPIRE', key, ARGV[\(argument)]) end
        end
        """
    }

    /// Lists clients in a room until they expire, and removes up to 1000 that have expired: a room that is never empty, and
    /// whose presence is never read, would keep them for ever.
    ///
    /// Keys: presence, expiry. Arguments: milliseconds until they expire, envelope or empty, channel, command for
    /// publishing, then for each client its identifier and what others see.
    package static let enter = RedisScript(
        """
        local time = redis.call('TIME')
        local now = time[1] * 1000 + math.floor(time[2] / 1000)
        for index = 5, #ARGV, 2 do
          redis.call('HSET', KEYS[1], ARGV[index], ARGV[index + 1])
          redis.call('ZADD', KEYS[2], string.format('%.0f', now + ARGV[1]), ARGV[index])
        end
        \(removeExpired)
        \(keep(for: 1))
        if ARGV[2] ~= '' then redis.call(ARGV[4], ARGV[3], '0  ' .. ARGV[2]) end
        return 1
        """)

    /// Keys: presence, expiry. Arguments: client, envelope or empty, channel, command for publishing.
    package static let leave = RedisScript(
        """
        redis.call('HDEL', KEYS[1], ARGV[1])
        redis.call('ZREM', KEYS[2], ARGV[1])
        if ARGV[2] ~= '' then redis.call(ARGV[4], ARGV[3], '0  ' .. ARGV[2]) end
        return 1
        """)

    /// Lists a page of the clients, and first of all removes up to 1000 that have expired. If there may be more, the page is
    /// empty, and the first page is to be asked for once more.
    ///
    /// A page may repeat clients of those before. Few are read at a time, because a step may read more than the page should
    /// hold; a step costs something even if it finds none.
    ///
    /// Keys: presence, expiry. Arguments: cursor, `0` for the first page; cost of the page, in bytes, which its last step may
    /// exceed. Returns: cursor of the next page, `0` if there is none, empty for the first page; what others see of each
    /// client.
    package static let list = RedisScript(
        """
        if ARGV[1] == '0' then
          local time = redis.call('TIME')
          local now = time[1] * 1000 + math.floor(time[2] / 1000)
          \(removeExpired)
          if #gone == \(expiredLimit) then return {'', {}} end
        end
        local cursor, left, clients = ARGV[1], tonumber(ARGV[2]), {}
        repeat
          local step = redis.call('HSCAN', KEYS[1], cursor, 'COUNT', 16)
          cursor = step[1]
          left = left - \(entryOverhead)
          for index = 2, #step[2], 2 do
            clients[#clients + 1] = step[2][index]
            left = left - #step[2][index]
          end
        until cursor == '0' or left <= 0
        return {cursor, clients}
        """)

    /// Counts a connection of a user. Keys: the user's. Arguments: limit, milliseconds until it expires, then clients.
    /// Returns: 0 if the user has as many as it may have.
    package static let register = RedisScript(
        """
        local time = redis.call('TIME')
        local now = time[1] * 1000 + math.floor(time[2] / 1000)
        redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now))
        for index = 3, #ARGV do
          if not redis.call('ZSCORE', KEYS[1], ARGV[index]) and redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[1]) then
            return 0
          end
          redis.call('ZADD', KEYS[1], string.format('%.0f', now + ARGV[2]), ARGV[index])
        end
        \(keep(for: 2))
        return 1
        """)
}
