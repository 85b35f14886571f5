/// The failure of a layer between the socket and its consumer, such as TLS. This module knows none of these layers: the
/// failure keeps its own type for those who do.
package struct LayerFailure: Error, Hashable, Sendable, CustomStringConvertible {
    package typealias Cause = Error & Hashable & Sendable & CustomStringConvertible

    package let cause: any Cause

    package init(_ cause: any Cause) {
        self.cause = cause
    }

    package static func == (left: LayerFailure, right: LayerFailure) -> Bool {
        AnyHashable(left.cause) == AnyHashable(right.cause)
    }

    package func hash(into hasher: inout Hasher) {
        self.cause.hash(into: &hasher)
    }

    package var description: String { self.cause.description }
}
