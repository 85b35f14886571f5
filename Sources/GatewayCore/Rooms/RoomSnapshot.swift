import Rooms

extension SharedRoom {
    /// The cluster's copy of the room's history.
    struct Snapshot {
        typealias Stored = (publication: Publication, plain: RoomMessage.Plain?, origin: RoomMessage.Origin?)

        var position: StreamPosition
        /// Publications after the position that was asked for, oldest first.
        var publications: [Stored]
        /// Publications up to this offset may be missing. Of those after it, only removed ones are.
        var floor: UInt64 = 0
        /// Number of removals from the stream so far.
        var removals: UInt64 = 0
        /// Time after which the publications expire; `nil` for the policy's time.
        var lasting: Duration?
        /// Offset of the last publication before the epoch began; `nil` if it is not known.
        var epochStart: UInt64?
        /// Whether all publications were asked for.
        var isWhole = true

        /// Those that a node at `own` has not delivered. Of another epoch, offsets after its beginning were given again.
        func missed(after own: StreamPosition) -> [Stored] {
            let last = self.position.epoch == own.epoch ? own.offset : min(own.offset, self.epochStart ?? own.offset)
            return self.publications.filter { $0.publication.offset > last }
        }

        /// Whether a node at `own` has all with those that it missed.
        /// - Parameter removals: that the node's copy contains.
        func isComplete(_ missed: [Stored], after own: StreamPosition, removals: UInt64) -> Bool {
            guard self.position.epoch == own.epoch else { return false }
            if self.isWhole { return self.floor <= own.offset }
            return self.removals == removals && UInt64(missed.count) == self.position.offset &- own.offset
        }
    }
}
