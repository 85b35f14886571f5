/// What a simulated name service says about a name.
package enum NameScript: Hashable, Sendable {
    /// These addresses, in this order; their ports are replaced by the one asked for.
    case addresses([SocketAddress], after: Duration = .milliseconds(1))
    case failure(ResolutionFailure, after: Duration = .milliseconds(1))
    /// No answer ever comes.
    case silence
}
