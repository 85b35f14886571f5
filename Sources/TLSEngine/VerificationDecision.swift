/// The caller's answer to a `VerificationRequest`. It overrides OpenSSL's own verdict in both directions.
public enum VerificationDecision: Sendable, Hashable {
    case accept
    case reject
}
