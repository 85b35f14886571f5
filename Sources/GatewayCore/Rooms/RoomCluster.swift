import Cluster
import GatewayConfiguration
import RedisEngine
import SessionTasks
import StreamTransport
import TLSEngine

/// How the rooms of this node are shared with others.
package struct RoomCluster: Sendable {
    /// Name of this node, unique in the cluster.
    package var node: String
    package var address: RedisAddress
    package var client: RedisClientSettings
    /// Of all keys and channels.
    package var prefix: String
    /// Whether rooms that keep no history serve the members of this node while Redis cannot be reached.
    package var deliversAlone = false
    /// Whether a server with an append-only file starts again with all that it acknowledged.
    package var isDurable = true
    /// How long a client stays listed in a room after its node stopped renewing it.
    package var presenceTime: Duration = .seconds(60)
    /// Memory of the publications that one command reads from a history, in bytes. A reply holds more only if it is a single
    /// publication. Default: 512 KiB, for which Redis needs a few milliseconds.
    package var historyPage = 512 << 10
    /// Memory of the clients that one command reads from a room's list, in bytes, roughly. Default: 512 KiB.
    package var presencePage = 512 << 10
    /// Memory of the clients of a room that one answer lists, in bytes. Default: 16 MiB.
    package var presenceLimit = RoomHub.presenceLimit
    /// Of all connections to Redis.
    package let counters = RedisCounters()
    /// Called on the first loop when Redis is lost and found again, with text for the log.
    package var report: @Sendable (_ isAway: Bool, _ text: String) -> Void = { _, _ in }

    /// Called on the first loop with a warning about Redis' settings; `nil` does not ask for them.
    package var warn: (@Sendable (_ text: String) -> Void)?

    package init(node: String, address: RedisAddress, client: RedisClientSettings, prefix: String = "sluice") {
        self.node = node
        self.address = address
        self.client = client
        self.prefix = prefix
    }

    /// - Throws: if a file cannot be read or used.
    package init(_ settings: ClusterSettings, log: TunnelLog? = nil) throws(GatewayPlanError) {
        do throws(GatewayPlanError) {
            let tls = try TLSMaterial.configuration(settings.tls, speaksWebSocket: false, log: log)
            var client = RedisClientSettings()
            if settings.redis.address.usesTLS { client.secure = try TLSMaterial.context(tls) }
            client.serverName = settings.tls.serverName
            let node = settings.node ?? Self.makeName()
            client.clientName = "sluice-\(node)"
            self.init(
                node: node, address: try Self.address(settings), client: client, prefix: settings.prefix)
            self.deliversAlone = settings.whenAway == .local
            self.isDurable = settings.isDurable
            self.presenceTime = settings.presenceTime
        } catch {
            throw error.located(at: .cluster)
        }
    }

    private static func address(_ settings: ClusterSettings) throws(GatewayPlanError) -> RedisAddress {
        let address = settings.redis.address
        let given = try settings.password.map { (password) throws(GatewayPlanError) in
            try TLSMaterial.text(of: password)
        }
        guard let password = given ?? address.credentials?.password else { return address }
        return address.using(
            RedisCredentials(user: settings.user ?? address.credentials?.user, password: password))
    }

    /// The host's name and four digits, because several nodes may run on a host.
    private static func makeName() -> String {
        let name = (try? SystemFile.read("/proc/sys/kernel/hostname", limit: 256)) ?? []
        let text = String(decoding: name.prefix { $0 > 0x20 }, as: UTF8.self)
        return "\(text.isEmpty ? "node" : text)-\(RoomHub.text(Machine.randomWords(1)).prefix(4))"
    }
}

/// A reply that the script never returns.
struct UnexpectedReply: Error {}

extension Result<RedisValue, RedisClientError> {
    /// Result of a script, as the rooms use it.
    func decoded<Value>(_ read: (RedisValue) throws -> Value) -> Result<Value, RoomBrokerError> {
        switch self {
        case .success(let reply):
            guard let value = try? read(reply) else { return .failure(.refused("Redis sent an unexpected reply")) }
            return .success(value)
        case .failure(.notSent): return .failure(.away)
        case .failure(.uncertain): return .failure(.uncertain)
        case .failure(.server(let error)): return .failure(.refused("\(error)"))
        }
    }
}

extension Duration {
    /// Rounded down.
    var wholeMilliseconds: Int {
        let (seconds, attoseconds) = self.components
        let (milliseconds, isTooLarge) = seconds.multipliedReportingOverflow(by: 1000)
        return isTooLarge ? .max : Int(milliseconds) + Int(attoseconds / 1_000_000_000_000_000)
    }
}
