/// What happens when one direction of a tunnel is finished.
package enum HalfClose: String, Sendable, Equatable, CaseIterable {
    /// The other direction stays open until it ends too; no Close frame is sent meanwhile.
    case hold
    /// What is under way is delivered, then the closing handshake begins.
    case close
    /// An empty binary message marks the end of a direction, for peers that know it.
    case signal
}
