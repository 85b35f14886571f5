extension ConfigurationSource {
    /// Nothing is printed on standard output.
    var isQuiet: Bool {
        switch self {
        case .builtIn, .file: false
        case .bridge(let terms): terms.isQuiet
        }
    }

    /// Every upstream must be reachable before anything listens.
    var requiresTarget: Bool {
        switch self {
        case .builtIn, .file: false
        case .bridge(let terms): terms.requiresTarget
        }
    }
}
