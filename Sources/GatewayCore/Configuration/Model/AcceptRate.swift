/// A bucket of tokens: each accepted connection takes one; without one it is refused.
package struct AcceptRate: Sendable, Equatable {
    /// Tokens that come back each second, 1 to 10 000 000.
    package var perSecond = 50_000
    /// Tokens that a quiet time saves up, 1 to 10 000 000.
    package var burst = 50_000

    package init() {}

    package init(perSecond: Int, burst: Int) {
        self.perSecond = perSecond
        self.burst = burst
    }
}
