import RedisEngine

/// Events of a Redis client for its owner, on its loop.
///
/// The functions are called while the client handles an event of a connection, never within a call of the owner: each
/// may call everything of the client, `stop` included.
package protocol RedisClientDelegate: AnyObject {
    /// Commands are accepted.
    func redisBecameReady(_ client: RedisClient)
    /// No server, or not each one that the cluster needs, can be reached; the client tries again by itself. Called once
    /// until the client is ready.
    /// - Parameter failure: why, for the log, without passwords.
    func redisWentAway(_ client: RedisClient, _ failure: String)
    /// Messages of the channel from now on arrive, in order. Called again after each reconnection, and after the channel
    /// moved to another server: messages between may be missing.
    func redisSubscribed(_ client: RedisClient, to channel: [UInt8])
    func redisReceived(_ client: RedisClient, _ payload: [UInt8], on channel: [UInt8])
    /// Something for the log: a further attempt that failed, a primary that changed. Default: nothing.
    /// - Parameter text: without passwords.
    func redisReported(_ client: RedisClient, _ text: String)
}

extension RedisClientDelegate {
    package func redisReported(_ client: RedisClient, _ text: String) {}
}

/// Why a command has no reply.
package enum RedisClientError: Error, Equatable, Sendable, CustomStringConvertible {
    /// No server can be reached or none executes commands now, or the client has too much to do: the command was surely
    /// not executed.
    case notSent
    /// The command may have been executed, or not.
    case uncertain
    case server(RedisServerError)

    package var description: String {
        switch self {
        case .notSent: "Redis cannot be reached, or does not execute commands now"
        case .uncertain: "the connection to Redis was lost before the reply"
        case .server(let error): "Redis answered: \(error)"
        }
    }
}
