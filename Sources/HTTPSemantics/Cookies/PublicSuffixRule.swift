/// Says which domains belong to the public, so that nobody may set cookies for them (RFC 6265bis §5.7, step 7).
///
/// The house carries no list of suffixes: who has one hands it in here.
package struct PublicSuffixRule: Sendable {
    /// Domains of one label, such as `com` and `localhost`, and nothing else.
    package static let singleLabels = PublicSuffixRule { !$0.utf8.contains(UInt8(ascii: ".")) }

    private let judge: @Sendable (String) -> Bool

    /// - Parameter judge: asked with a domain in canonical form, never with an address; must not block.
    package init(_ judge: @escaping @Sendable (String) -> Bool) {
        self.judge = judge
    }

    package func isPublicSuffix(_ domain: String) -> Bool {
        domain.isEmpty || !CookieDomain.isAddress(domain) && self.judge(domain)
    }
}
