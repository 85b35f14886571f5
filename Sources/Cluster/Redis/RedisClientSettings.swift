import RedisEngine
import TLSEngine

/// How a client speaks to its servers, and its limits.
package struct RedisClientSettings: Sendable {
    /// Shown by `CLIENT LIST`; empty for none.
    package var clientName = "sluice"
    /// TLS of `rediss://`: roots, and a client's certificate. Without it such a server is not connected to.
    package var secure: TLSContext?
    /// Name that the servers' certificates must have; `nil` for the host of each server.
    package var serverName: String?
    /// For name resolution, connecting and TLS together. Default: 5 seconds.
    package var connectTimeout = Duration.seconds(5)
    /// Time in which a server must be ready after connecting. Default: 5 seconds.
    package var handshakeTimeout = Duration.seconds(5)
    /// Time in which a command must be answered; the connection ends if one is not. Default: 5 seconds.
    package var commandTimeout = Duration.seconds(5)
    /// Silence of a server after which it gets a `PING`. Default: 15 seconds.
    package var pingInterval = Duration.seconds(15)
    /// Commands of one connection that are unanswered. A further one fails with `notSent`. Default: 16 384.
    package var maximumCommands = 16_384
    /// Bytes of commands of one connection that are unanswered. Default: 32 MiB.
    package var maximumCommandBytes = 32 << 20
    /// Bounds of one reply, and of one message. A larger one ends the connection.
    package var replyLimits = RedisReplyLimits()

    package init() {}

    /// Settings with TLS where the address has it: certificates are verified, unless `tls` says otherwise.
    /// - Throws: if a certificate or key of `tls` cannot be read.
    package init(for address: RedisAddress, tls: TLSConfiguration = .client()) throws(TLSFailure) {
        if address.usesTLS { self.secure = try TLSContext(tls) }
    }

    /// - Parameter credentials: of the server; `nil` for none.
    func connection(_ credentials: RedisCredentials?, database: Int) -> RedisConnectionSettings {
        var settings = RedisConnectionSettings()
        settings.credentials = credentials
        settings.database = database
        settings.clientName = self.clientName
        settings.handshakeTimeout = self.handshakeTimeout
        settings.pingInterval = self.pingInterval
        // The link itself keeps to the limits of commands: a client that has reached them can still subscribe.
        settings.maximumCommands = 2 * self.maximumCommands + 1024
        settings.maximumCommandBytes = self.maximumCommandBytes + (16 << 20)
        settings.replyLimits = self.replyLimits
        return settings
    }
}
