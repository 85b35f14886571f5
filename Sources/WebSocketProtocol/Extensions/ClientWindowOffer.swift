/// What an offer says about the window with which the client will compress (RFC 7692 §7.1.2.2).
public enum ClientWindowOffer: Equatable, Sendable {
    /// The parameter is absent: the server must not limit the client's window.
    case notLimitable
    /// `client_max_window_bits` alone: the server may choose a limit.
    case limitable
    /// `client_max_window_bits=N`: the client will not use more in any case, and the server may choose less. 8 to 15.
    case limited(Int)
}
