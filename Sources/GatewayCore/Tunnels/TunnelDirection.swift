/// One direction of a tunnel, named after the side its bytes come from.
package enum TunnelDirection: Sendable {
    case open
    /// Its source ended it, or its sink wants no more: nothing is missing.
    case finished
    /// It ended before its source did: bytes may be missing.
    case failed
}
