/// Events and actions of a client's machine.
extension RoomClient {
    /// Time for decisions. Both advance together.
    package struct Instant: Sendable {
        /// Since any fixed instant, never going back.
        package var elapsed: Duration
        /// Seconds since 1970.
        package var unix: UInt64

        package init(elapsed: Duration, unix: UInt64) {
            self.elapsed = elapsed
            self.unix = unix
        }
    }

    package enum Action: Sendable, Equatable {
        case send(Reply)
        /// Report with `joined`.
        case join(Join)
        case leave(channel: String)
        /// Report with `completed`.
        case publish(number: UInt32, channel: String, Payload, ClientInfo)
        /// The owner sends the reply, and reports with `completed`.
        case presence(number: UInt32, channel: String)
        case presenceStats(number: UInt32, channel: String)
        case history(number: UInt32, Command.HistoryRequest)
        /// The connection has a user now: it is in the registry from here on. Report with `registered`.
        case register(ClientInfo)
        case close(Disconnect)
    }

    /// Membership that the owner makes in a room.
    package struct Join: Sendable, Equatable {
        package var channel: String
        package var policy: RoomPolicy
        package var info: ClientInfo
        /// Publications after this position are wanted; `nil` joins at the newest.
        package var recovery: StreamPosition?
        /// The client does not enter if it would not recover all: the join fails with `unrecoverablePosition`.
        package var rejectsLoss = false
        package var recoveryLimit: Int
        package var isPositioned: Bool
        package var isRecoverable: Bool
        package var usesDeltas = false
        /// `nil` wants all publications.
        package var filter: TagFilter?
    }

    /// Result of a join: what the room had to say.
    package struct JoinResult: Sendable, Equatable {
        package var position: StreamPosition
        package var publications: [Publication] = []
        package var isRecovered = false

        package init(position: StreamPosition) {
            self.position = position
        }
    }
}
