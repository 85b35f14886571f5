/// What a delegate says to a challenge.
struct ChallengeAnswer: Sendable {
    let disposition: URLSession.AuthChallengeDisposition
    let credential: URLCredential?

    /// Where nobody is asked.
    static let none = ChallengeAnswer(disposition: .performDefaultHandling, credential: nil)
}
