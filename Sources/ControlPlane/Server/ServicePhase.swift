/// Where the gateway is in its life.
package enum ServicePhase: String, Sendable, CaseIterable {
    case starting
    case ready
    case draining
}
