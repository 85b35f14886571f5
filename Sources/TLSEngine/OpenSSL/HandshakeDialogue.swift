/// What passes between the caller and a handshake; gone when the handshake is over.
final class HandshakeDialogue {
    /// What the caller was asked and has not answered.
    enum Question {
        case none
        case verification
        case clientCertificate
    }

    var question = Question.none
    /// Put here in the middle of OpenSSL's work, asked when that returns.
    var request: VerificationRequest?
    var decision: VerificationDecision?
    var chosenIdentity = ChosenIdentity.undecided
    /// Why the peer was refused, to tell it better than OpenSSL's "certificate verify failed" does.
    var refusal: TLSFailure.Kind?
    /// Server: what its records will need.
    var secrets = TrafficSecrets()
}
