enum MailFailure: Error, CustomStringConvertible {
    case notOffered
    /// A reply that does not have the code that was hoped for.
    case refused(String)
    case malformedReply(String)
    /// Plaintext followed the server's reply to STARTTLS (RFC 3207 §6): it could be taken for a reply under TLS.
    case injected(Int)
    case endedEarly

    var description: String {
        switch self {
        case .notOffered: "the server does not offer STARTTLS"
        case .refused(let reply): "the server refused: \(reply)"
        case .malformedReply(let line): "this is no reply: \(line)"
        case .injected(let count): "\(count) bytes of plaintext followed the reply to STARTTLS"
        case .endedEarly: "the server ended the connection within the dialogue"
        }
    }
}
