/// Where the configuration that runs came from, with what was asked for beside it.
enum ConfigurationSource: Sendable {
    case builtIn(LogOverrides)
    /// A file, which a reload reads again, and what the command line puts over it each time.
    case file(String, overrides: LogOverrides)
    case bridge(BridgeTerms)
}
