/// Keys at the top of a configuration.
package enum GatewayKey: String, CaseIterable, Sendable {
    case listeners
    case routes
    case upstreams
    case control
    case maxConnections = "max-connections"
    case loops
    case drainTimeout = "drain-timeout"
    case closeSpread = "close-spread"
    case logFormat = "log-format"
    case logLevel = "log-level"
}
