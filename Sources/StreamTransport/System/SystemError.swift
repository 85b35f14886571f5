/// An error number that a system call gave, with its name and text.
package struct SystemError: Error, Hashable, Sendable {
    package let number: Int32

    @inlinable
    package init(_ number: Int32) {
        self.number = number
    }
}
