import GatewayCore

/// Who may do what, and where to, by one configuration.
struct ControlAccess: Sendable {
    let settings: ControlSettings
    let gatekeeper: ConfiguredGatekeeper
    /// Where what is opened by command may lead.
    let targets: TargetRules
    /// How callers may say who they are.
    let schemes: AccessSchemes

    init(_ settings: ControlSettings) {
        self.settings = settings
        self.gatekeeper = ConfiguredGatekeeper(settings)
        self.targets = settings.targets
        self.schemes = AccessSchemes(settings)
    }
}
