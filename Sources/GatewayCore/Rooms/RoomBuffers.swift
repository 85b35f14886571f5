/// Limits of the messages queued in rooms, in bytes. The cost of a message is its bytes and a fixed overhead.
package struct RoomBuffers: Sendable {
    /// Messages that wait for one member whose output is full. A member further behind is removed, or skips messages, so
    /// that it does not hold up the room.
    package var memberBacklog = 4 << 20
    /// Messages that all rooms of one loop keep for slow members. Above it, `crowdedMemberBacklog` replaces
    /// `memberBacklog`.
    package var totalBacklog = 64 << 20
    package var crowdedMemberBacklog = 256 << 10
    /// Bytes queued in a member's connection above which messages stay in the room, stored once for all members.
    package var memberOutput = 64 << 10
    /// Messages of one room that wait for members that are ready; above it no more are taken from other loops.
    package var ready = 256 << 10
    /// Messages that are framed together. It takes a copy, which large messages do not need.
    package var batch = 64 << 10
    /// Messages taken from a room at once.
    package var taken = 64 << 10
    /// A loop's own messages that are not delivered; above it its publishers are paused.
    package var undelivered = 256 << 10
    /// Messages announced to one loop and not taken yet; above it the publishers of other loops are paused, until half
    /// is taken.
    package var inbox = 1 << 20

    package init() {}
}
