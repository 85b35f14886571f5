/// What one `wait` found: tokens of ready descriptors with what they are ready for. Made once per loop and reused.
package struct ReadyEvents {
    package struct Event: Hashable, Sendable {
        package let token: UInt64
        package let ready: Interest

        @inlinable
        package init(token: UInt64, ready: Interest) {
            self.token = token
            self.ready = ready
        }
    }

    /// Most events taken in one turn; more stay ready and are taken in the next.
    package static let capacity = 256

    package var events: [Event] = []

    package init() {
        self.events.reserveCapacity(Self.capacity)
    }
}
