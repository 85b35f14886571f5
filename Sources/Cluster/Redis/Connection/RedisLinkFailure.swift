import RedisEngine
import StreamTransport

/// Why a link ended.
enum RedisLinkFailure: Error, Equatable, CustomStringConvertible {
    case transport(TransportFailure)
    case connection(RedisConnectionFailure)
    /// The address says TLS, the settings have none.
    case noTLS
    case noRESP3
    /// The server is Redis of this version.
    case tooOld(version: String)
    case isReplica
    case isLoading
    case scriptRefused(RedisServerError)
    case subscriptionRefused(RedisServerError)
    /// Sentinel named another primary.
    case primaryMoved(RedisEndpoint)
    /// Neither a sentinel nor a node of the cluster was of use.
    case notFound(String)

    var description: String {
        switch self {
        case .transport(let failure): "\(failure)"
        case .connection(let failure): "\(failure)"
        case .noTLS: "the URL of Redis requires TLS, but the client has no TLS settings"
        case .noRESP3: "the server does not speak RESP3; version 7.0 of Redis or a later one is required"
        case .tooOld(let version):
            "the server is version \(version) of Redis; version 7.0 or a later one is required"
        case .isReplica: "the server is a replica, and takes no writes; use the primary's address, or Sentinel"
        case .isLoading: "Redis is loading its data"
        case .scriptRefused(let error): "Redis refused to load a script: \(error)"
        case .subscriptionRefused(let error): "Redis refused a subscription: \(error)"
        case .primaryMoved(let endpoint): "Sentinel named another primary: \(endpoint)"
        case .notFound(let text): text
        }
    }

    /// In the terms of `RedisReconnection`, which decides on the pause.
    var forReconnection: RedisConnectionFailure {
        switch self {
        case .connection(let failure): failure
        case .scriptRefused(let error), .subscriptionRefused(let error):
            .handshakeRefused(step: "a command", error)
        case .noTLS, .noRESP3, .tooOld: .handshakeRefused(step: "HELLO", RedisServerError("NOPROTO".utf8))
        case .transport, .isReplica, .isLoading, .primaryMoved, .notFound: .lost
        }
    }
}
