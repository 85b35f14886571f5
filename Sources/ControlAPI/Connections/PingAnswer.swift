/// A ping was answered.
package struct PingAnswer: Codable, Sendable, Equatable {
    package var rttMs: Double

    package init(
        rttMs: Double
    ) {
        self.rttMs = rttMs
    }
}
