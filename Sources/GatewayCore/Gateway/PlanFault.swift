/// A configuration that is well-formed but cannot be put to work: a certificate that cannot be read, an address that is
/// taken.
package struct PlanFault: Error, Hashable, Sendable, CustomStringConvertible {
    /// What and where, in one line.
    package let description: String

    package init(_ description: String) {
        self.description = description
    }
}
