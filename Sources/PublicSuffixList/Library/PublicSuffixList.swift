import CPublicSuffix

/// The public suffix list of the system, by libpsl: domains below which different owners register names, such as `com`,
/// `co.uk` and `github.io` (<https://publicsuffix.org>).
@safe
package struct PublicSuffixes: @unchecked Sendable {  // Immutable; the library only reads the list.
    /// `nil` without the library (package `libpsl5`). Read on first use, and then kept.
    package static let installed: Self? = {
        var functions = sluice_psl_functions()
        guard unsafe sluice_psl_open(&functions) == 1, let list = unsafe functions.latest(nil) else { return nil }
        return unsafe Self(functions: functions, list: list)
    }()

    private let functions: sluice_psl_functions
    private let list: UnsafeMutableRawPointer

    /// Whether `domain` is a public suffix. A top-level domain that is not in the list is one.
    /// - Parameter domain: in small letters, with A-labels, without a final dot.
    package func contains(_ domain: String) -> Bool {
        unsafe domain.withCString { unsafe self.functions.is_public_suffix(self.list, $0) } == 1
    }
}
