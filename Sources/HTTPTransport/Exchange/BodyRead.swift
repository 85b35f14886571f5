/// What a body source had to give.
package enum BodyRead: Sendable, Hashable {
    /// So many bytes, at least 1, were put at the front of the room.
    case bytes(Int)
    /// Everything was given.
    case end
    /// Nothing now; `Exchange.bodyAvailable` will say when.
    case later
    /// There will be no more, though more was promised. The exchange fails with `.body(.sourceFailed)`.
    case failed
}
