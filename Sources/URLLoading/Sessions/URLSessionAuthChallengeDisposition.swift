/// What becomes of a challenge.
public enum URLSessionAuthChallengeDisposition: Int, Sendable {
    /// With the credential; without one, the load goes on without.
    case useCredential = 0
    /// As if nobody had been asked.
    case performDefaultHandling = 1
    /// The load fails with `URLError.cancelled`.
    case cancelAuthenticationChallenge = 2
    /// The next challenge of the same answer is asked.
    case rejectProtectionSpace = 3
}
