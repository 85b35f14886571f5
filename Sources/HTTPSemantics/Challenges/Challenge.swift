/// One challenge of `WWW-Authenticate` or `Proxy-Authenticate` (RFC 9110 §11.3).
package struct Challenge: Equatable, Sendable {
    package struct Parameter: Equatable, Sendable {
        /// As it came; names are told apart without regard to case.
        package let name: String
        /// Its quotes and escapes undone.
        package let value: String

        package init(name: String, value: String) {
            self.name = name
            self.value = value
        }
    }

    /// As it came.
    package let schemeName: String
    /// What stands in the place of parameters, as Negotiate and NTLM have it.
    package let token68: String?
    package let parameters: [Parameter]

    package init(schemeName: String, token68: String? = nil, parameters: [Parameter] = []) {
        self.schemeName = schemeName
        self.token68 = token68
        self.parameters = parameters
    }

    package var scheme: AuthenticationScheme { AuthenticationScheme(name: self.schemeName) }

    package var realm: String? { self.parameter("realm") }

    /// The first of that name; a parameter may come only once.
    package func parameter(_ name: String) -> String? {
        self.parameters.first { $0.name.matchesIgnoringCase(name) }?.value
    }
}
