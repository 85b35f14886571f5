/// A file descriptor. Who holds it says who closes it: the type itself owns nothing.
package struct Descriptor: Hashable, Sendable {
    package let number: Int32

    @inlinable
    package init(_ number: Int32) {
        self.number = number
    }
}
