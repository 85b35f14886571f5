/// When the steps of opening a connection were taken. A step that was not taken, or did not end, is `nil`.
package struct ConnectTimings: Sendable, Hashable {
    package var lookupStart: ContinuousClock.Instant?
    package var lookupEnd: ContinuousClock.Instant?
    package var connectStart: ContinuousClock.Instant?
    package var secureStart: ContinuousClock.Instant?
    package var secureEnd: ContinuousClock.Instant?
    /// With TLS, after its handshake.
    package var connectEnd: ContinuousClock.Instant?

    package init() {}
}
