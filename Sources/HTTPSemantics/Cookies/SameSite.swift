/// With which requests a cookie goes along that another site caused (RFC 6265bis §5.6.7).
package enum SameSite: String, Equatable, Sendable {
    /// The server did not say; treated like `lax`.
    case unspecified
    /// With all, if the cookie is secure.
    case none
    /// With safe ones that bring the user to the site.
    case lax
    /// With none.
    case strict

    /// The value of the attribute, in either case; what is unknown says nothing.
    package init(attribute value: String?) {
        self =
            switch value?.loweredASCII {
            case "none": .none
            case "lax": .lax
            case "strict": .strict
            default: .unspecified
            }
    }
}
