/// What to be told about a descriptor.
package struct Interest: OptionSet, Hashable, Sendable {
    package let rawValue: UInt8

    @inlinable
    package init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    package static let readable = Interest(rawValue: 1)
    package static let writable = Interest(rawValue: 2)
    /// Reported whether asked for or not: both directions are over, or the connection failed.
    package static let hangUp = Interest(rawValue: 4)
}
