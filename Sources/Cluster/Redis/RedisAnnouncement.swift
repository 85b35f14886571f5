import RedisEngine

/// The message that a script publishes on a channel of its keys' slot.
///
/// While a slot of Redis Cluster migrates, a script whose keys have moved is executed by the slot's next server, to which
/// `ASK` sends it. The subscribers stay at the former server until the migration ends, so that the client publishes the
/// message there as well.
package struct RedisAnnouncement {
    let channel: [UInt8]
    /// From the script's reply; `nil` if the script published nothing.
    let message: (RedisValue) -> [UInt8]?

    package init(on channel: [UInt8], _ message: @escaping (RedisValue) -> [UInt8]?) {
        self.channel = channel
        self.message = message
    }

    /// - Returns: `nil` if the script published nothing.
    func command(after reply: RedisValue) -> RedisCommand? {
        self.message(reply).map { RedisCommand("SPUBLISH", .bytes(self.channel), .bytes($0)) }
    }
}
