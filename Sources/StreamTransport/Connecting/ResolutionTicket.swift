/// Names one lookup under way, so that it can be given up.
package struct ResolutionTicket: Hashable, Sendable {
    package let number: UInt64

    package init(number: UInt64) {
        self.number = number
    }
}
