/// The schemes of authentication that are told apart here (RFC 9110 §11.1).
package enum AuthenticationScheme: Hashable, Sendable {
    case basic
    case digest
    case ntlm
    case negotiate
    /// Any other, in lower case.
    case other(String)

    package init(name: String) {
        self =
            switch name.loweredASCII {
            case "basic": .basic
            case "digest": .digest
            case "ntlm": .ntlm
            case "negotiate": .negotiate
            case let name: .other(name)
            }
    }

    /// The higher, the less it gives away.
    var strength: Int {
        switch self {
        case .negotiate: 4
        case .ntlm: 3
        case .digest: 2
        case .basic: 1
        case .other: 0
        }
    }
}
