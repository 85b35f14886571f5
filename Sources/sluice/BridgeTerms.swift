/// What `sluice bridge` asks for beyond a configuration.
struct BridgeTerms: Sendable, Equatable {
    /// Ends with exit code 69 unless the target can be reached at start.
    var requiresTarget: Bool
    /// Prints nothing on standard output.
    var isQuiet: Bool
}
