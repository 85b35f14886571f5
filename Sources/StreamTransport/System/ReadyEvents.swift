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

    private var slots = [Event](repeating: Event(token: 0, ready: []), count: ReadyEvents.capacity)
    package private(set) var count = 0

    package init() {}

    package subscript(index: Int) -> Event {
        self.slots[index]
    }

    /// The events themselves, in their order.
    package var events: ArraySlice<Event> {
        self.slots[..<self.count]
    }

    package mutating func removeAll() {
        self.count = 0
    }

    /// Adds an event; one beyond the capacity is dropped, and stays ready.
    package mutating func append(_ event: Event) {
        guard self.count < Self.capacity else { return }
        self.slots[self.count] = event
        self.count += 1
    }

    /// Changes their order.
    package mutating func shuffle(using generator: inout some RandomNumberGenerator) {
        self.slots[..<self.count].shuffle(using: &generator)
    }
}
