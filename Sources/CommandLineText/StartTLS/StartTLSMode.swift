/// The protocol in which a server is asked to go over to TLS.
package enum StartTLSMode: Sendable, Equatable {
    /// RFC 3207.
    case smtp
    /// RFC 9051 §6.2.1.
    case imap
    /// RFC 2595 §4.
    case pop3
    /// RFC 4217 §4.1.
    case ftp
    /// RFC 4642.
    case nntp
    /// RFC 5804 §2.2.
    case sieve
    /// The SSLRequest of PostgreSQL's frontend protocol.
    case postgres
    /// Any protocol of lines.
    /// - Parameters:
    ///   - greeting: how the line begins that the server says first; `nil` if it says nothing.
    ///   - request: the line that asks for TLS, without its end.
    ///   - consent: how the answer begins if the server agrees.
    case line(greeting: String?, request: String, consent: String)

    /// Names for a help text.
    package static let forms = "smtp, imap, pop3, ftp, nntp, sieve, postgres or line:[GREETING:]REQUEST:CONSENT"

    /// - Returns: `nil` for what is none of `forms`.
    package init?(_ text: String) {
        switch text {
        case "smtp": self = .smtp
        case "imap": self = .imap
        case "pop3": self = .pop3
        case "ftp": self = .ftp
        case "nntp": self = .nntp
        case "sieve": self = .sieve
        case "postgres": self = .postgres
        default:
            var parts = text.split(separator: ":", omittingEmptySubsequences: false).map(String.init)
            guard text.utf8.allSatisfy({ (0x20...0x7E).contains($0) }), parts.first == "line",
                (3...4).contains(parts.count), !parts.contains("")
            else { return nil }
            let consent = parts.removeLast()
            let request = parts.removeLast()
            self = .line(greeting: parts.count == 2 ? parts[1] : nil, request: request, consent: consent)
        }
    }
}
