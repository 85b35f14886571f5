/// How often a field stands in a head, for those that may stand there once.
package struct FieldOccurrence {
    /// The value of the first; `nil` without any.
    package let first: String?
    /// Whether there is another one behind it.
    package let isRepeated: Bool

    package var occursOnce: Bool { self.first != nil && !self.isRepeated }
}
