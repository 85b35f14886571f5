import GatewayCore

/// How callers may say who they are, for the OpenAPI document.
struct AccessSchemes: Sendable {
    /// Any one of them is enough; none is needed where there are none.
    let requirements: DocumentValue
    let schemes: DocumentValue

    init(_ settings: ControlSettings) {
        var requirements: [DocumentValue] = []
        var schemes: DocumentValue = [:]
        if !settings.tokens.isEmpty {
            requirements.append(["bearer": []])
            schemes["bearer"] = [
                "type": "http", "scheme": "bearer", "description": "A token that control.tokens knows.",
            ]
        }
        if !settings.clients.isEmpty {
            requirements.append(["certificate": []])
            schemes["certificate"] = [
                "type": "mutualTLS", "description": "A certificate that control.clients knows.",
            ]
        }
        // The user at the other end of a Unix socket is known without a word.
        if !settings.peers.isEmpty { requirements.append([:]) }
        self.requirements = .array(requirements)
        self.schemes = schemes
    }
}
