import DequeModule
import Synchronization

/// Messages on their way from one loop to another. Bounded: whoever adds to a full channel must stop its sources, and is
/// told when half of it has been taken.
package final class ChatChannel: Sendable {
    /// Bytes, as messages count for them, from which on the channel is full.
    package static let highWatermark = 1 << 20
    package static let lowWatermark = highWatermark / 2

    package struct Part {
        package var messages: [(room: String, message: ChatMessage)] = []
        /// More is left.
        package var hasMore = false
        /// The loop that adds waits to be told.
        package var wakesSender = false
    }

    package struct AddResult: Equatable {
        /// The taker does not know yet that there is something to take.
        package var tellsTaker: Bool
        package var isFull: Bool
    }

    private struct State {
        var messages: Deque<(room: String, message: ChatMessage)> = []
        var cost = 0
        var isAnnounced = false
        var senderWaits = false
    }

    private let state = Mutex(State())

    package init() {}

    /// What is in the channel counts for so many bytes.
    package var cost: Int { self.state.withLock { $0.cost } }

    /// Takes all of `messages`, be the channel full or not.
    package func add(_ messages: [ChatMessage], room: String) -> AddResult {
        self.state.withLock { state in
            for message in messages {
                state.messages.append((room, message))
                state.cost += message.cost
            }
            let isFull = state.cost >= Self.highWatermark
            if isFull { state.senderWaits = true }
            defer { state.isAnnounced = true }
            return AddResult(tellsTaker: !state.isAnnounced, isFull: isFull)
        }
    }

    /// Takes messages in their order until they count for `limit` bytes, at least one.
    package func take(upTo limit: Int) -> Part {
        self.state.withLock { state in
            var part = Part()
            var taken = 0
            while taken < limit, let first = state.messages.popFirst() {
                taken += first.message.cost
                part.messages.append(first)
            }
            state.cost -= taken
            part.hasMore = !state.messages.isEmpty
            if !part.hasMore { state.isAnnounced = false }
            if state.senderWaits, state.cost <= Self.lowWatermark {
                state.senderWaits = false
                part.wakesSender = true
            }
            return part
        }
    }
}
