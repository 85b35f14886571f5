/// The settings of a tunnel, held once by the many that share them.
final class TunnelTerms: Sendable {
    let settings: TunnelSettings

    init(_ settings: TunnelSettings) {
        self.settings = settings
    }
}
