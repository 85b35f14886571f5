/// Keys of an entry of `upstreams`.
package enum UpstreamKey: String, CaseIterable, Sendable {
    case name
    case endpoints
    case policy
    case connectTimeout = "connect-timeout"
    case handshakeTimeout = "handshake-timeout"
    case retries
    case retryDelay = "retry-delay"
    case retryMaxDelay = "retry-max-delay"
    case ejectFailures = "eject-failures"
    case ejectDuration = "eject-duration"
    case tls
    case subprotocols
}
