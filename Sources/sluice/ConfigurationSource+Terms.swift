import GatewayCore

extension ConfigurationSource {
    /// Nothing is printed on standard output.
    var isQuiet: Bool {
        switch self {
        case .builtIn, .file: false
        case .bridge(let terms): terms.isQuiet
        }
    }

    /// A bridge is one listener and one target, and nobody to ask about it.
    var hasNoControlPlane: Bool {
        switch self {
        case .builtIn, .file: false
        case .bridge: true
        }
    }

    /// Every upstream must be reachable before anything listens.
    var requiresTarget: Bool {
        switch self {
        case .builtIn, .file: false
        case .bridge(let terms): terms.requiresTarget
        }
    }

    /// Lays over a configuration what the command line says.
    func adjust(_ configuration: inout GatewayConfiguration) {
        switch self {
        case .builtIn(let overrides), .file(_, let overrides): overrides.apply(to: &configuration)
        case .bridge: break
        }
        if self.hasNoControlPlane { configuration.control.address = nil }
    }
}
