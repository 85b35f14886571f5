/// Why a token is not accepted. Caused by the token alone.
package enum TokenError: Error, Equatable, Sendable, CustomStringConvertible {
    case tooLong(limit: Int)
    /// - Parameter reason: what is wrong with it.
    case malformed(String)
    /// Unknown, `none`, not configured, or not for the key. The name is shortened and safe to log.
    case algorithmRefused(String)
    /// No key has the name in the token's header (shortened), or there is no key at all.
    case unknownKey(String?)
    case badSignature
    /// At and after `time` the token is not accepted.
    /// - Parameter time: in seconds since 1970.
    case expired(at: Int64)
    /// - Parameter time: in seconds since 1970.
    case notYetValid(before: Int64)
    case wrongAudience
    case wrongIssuer

    /// One word for each kind, for metrics and logs.
    package var label: String {
        switch self {
        case .tooLong, .malformed: "malformed"
        case .algorithmRefused: "algorithm"
        case .unknownKey: "unknown-key"
        case .badSignature: "signature"
        case .expired: "expired"
        case .notYetValid: "not-yet-valid"
        case .wrongAudience: "audience"
        case .wrongIssuer: "issuer"
        }
    }

    /// A fixed text for the client, without anything from the token: printable ASCII without quotes and backslashes, as
    /// RFC 6750 §3 requires of `error_description`.
    package var summary: String {
        switch self {
        case .tooLong, .malformed: "The access token is malformed"
        case .algorithmRefused, .unknownKey, .badSignature: "The signature of the access token is not accepted"
        case .expired: "The access token expired"
        case .notYetValid: "The access token is not valid yet"
        case .wrongAudience: "The access token is for another audience"
        case .wrongIssuer: "The access token is of another issuer"
        }
    }

    /// Words for a log.
    package var description: String {
        switch self {
        case .tooLong(let limit): "token longer than \(limit) bytes"
        case .malformed(let reason): "malformed token: \(reason)"
        case .algorithmRefused(let name): "algorithm \(name) is not accepted"
        case .unknownKey(.some(let name)): "no key is named \(name)"
        case .unknownKey(nil): "there is no key"
        case .badSignature: "the signature does not match any key"
        case .expired(let time): "token expired at \(time)"
        case .notYetValid(let time): "token is not valid before \(time)"
        case .wrongAudience: "token is for another audience"
        case .wrongIssuer: "token is of another issuer"
        }
    }
}

/// Text from outside, made fit for a log.
enum LogText {
    /// - Returns: at most 64 printable ASCII characters; others become `?`.
    static func shortened(_ text: String) -> String {
        let shown = text.unicodeScalars.prefix(64).map { scalar -> Character in
            (0x20...0x7E).contains(scalar.value) ? Character(scalar) : "?"
        }
        return String(shown) + (text.unicodeScalars.count > 64 ? "…" : "")
    }
}
