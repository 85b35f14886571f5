enum MailFailure: Error, CustomStringConvertible {
    case notOffered
    /// A reply that does not have the code that was hoped for.
    case refused(String)
    case malformedReply(String)
    /// Something in the clear stood behind the server's consent to TLS (RFC 3207 §6): it could pass for an answer
    /// given under TLS.
    case injected(Int)
    case endedEarly

    var description: String {
        switch self {
        case .notOffered: "the server does not offer STARTTLS"
        case .refused(let reply): "the server refused: \(reply)"
        case .malformedReply(let line): "this is no reply: \(line)"
        case .injected(let count): "\(count) bytes in the clear stood behind the reply to STARTTLS"
        case .endedEarly: "the server ended the connection within the dialogue"
        }
    }
}
