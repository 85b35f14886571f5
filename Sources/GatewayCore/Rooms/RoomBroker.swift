import Rooms
import StreamTransport

/// Gives the messages of rooms their order, and keeps their history and presence: in this process, or in Redis for all
/// nodes of a cluster. One object for each loop; calls and completions are on it. A completion may come before the call
/// returns, and comes exactly once.
protocol RoomBroker: AnyObject {
    /// Whether many publications wait for the broker, so that publishers must not be read for now.
    /// `LoopRooms.brokerCaughtUp` follows.
    var isBehind: Bool { get }
    /// Whether the broker cannot be reached. Publications fail, but messages of clients without a protocol, which cannot
    /// be told, wait; `LoopRooms.brokerCaughtUp` follows.
    var isAway: Bool { get }

    /// The gateway ends.
    func stop()

    /// All loops have taken the messages that the broker received.
    func loopsCaughtUp()

    /// Opens a room for which members wait. `LoopRooms.opened` is called on their loops when they can enter.
    func open(_ room: SharedRoom)

    /// - Parameter complete: with the position of the publication, empty if the room keeps no history.
    func publish(
        _ message: RoomPublication, in room: SharedRoom,
        _ complete: @escaping (Result<RoomPublished, RoomBrokerError>) -> Void)

    /// A member is in the room on this node now; others may be notified.
    /// - Parameter complete: when `presence` lists it on all nodes; also if that failed, and it is listed later.
    func entered(_ room: SharedRoom, _ info: ClientInfo, _ complete: @escaping () -> Void)
    func left(_ room: SharedRoom, _ info: ClientInfo)

    /// The clients in the room on all nodes, in the order of their identifiers; `tooLarge` above `RoomHub.presenceLimit`.
    func presence(of room: SharedRoom, _ complete: @escaping (Result<[ClientInfo], RoomBrokerError>) -> Void)
    func presenceCounts(
        of room: SharedRoom, _ complete: @escaping (Result<RoomPresenceCounts, RoomBrokerError>) -> Void)
    /// - Parameter isWanted: asked while the history is read. If not, it may fail.
    func history(
        of room: SharedRoom, _ request: Command.HistoryRequest, while isWanted: @escaping () -> Bool,
        _ complete: @escaping (Result<RoomHistoryPage, RoomBrokerError>) -> Void)
    func removeHistory(of room: SharedRoom, _ complete: @escaping (Result<Void, RoomBrokerError>) -> Void)
    /// - Parameter complete: with whether the publication was there.
    func removePublication(
        of room: SharedRoom, offset: UInt64, _ complete: @escaping (Result<Bool, RoomBrokerError>) -> Void)

    /// - Parameter complete: with whether the user may have one more connection.
    func register(client: String, user: String, limit: Int, _ complete: @escaping (Bool) -> Void)
    func unregister(client: String, user: String)
}

/// A message to publish in a room.
struct RoomPublication {
    var publication: Publication
    /// As it was received from a client without a protocol.
    var plain: RoomMessage.Plain?
    /// The member that does not receive it.
    var origin: RoomMessage.Origin?
    var skipsHistory = false
    /// A second publication with the same key within five minutes is not published.
    var idempotencyKey: String?
}

struct RoomPublished {
    var position: StreamPosition
    /// The key was used before: nothing was published.
    var isRepeated = false
}

/// Failure of a request to the broker.
package enum RoomBrokerError: Error, Equatable {
    /// It cannot be reached, or has too much to do: nothing was done.
    case away
    /// Whether it was done is unknown.
    case uncertain
    /// It refused: nothing was done.
    case refused(String)
    /// The history has another epoch.
    case unrecoverablePosition
    /// The gateway has as many rooms as it may have, and not this one.
    case tooManyRooms
    /// The room has more clients than one answer holds.
    case tooLarge
}

extension RoomBrokerError {
    /// The error in a reply to a client of the protocol. Clients try again after a temporary one.
    var commandError: CommandError {
        switch self {
        case .away, .uncertain, .refused: .internal
        case .unrecoverablePosition: .unrecoverablePosition
        case .tooManyRooms, .tooLarge: .limitExceeded
        }
    }
}

/// How many are in a room on all nodes.
package struct RoomPresenceCounts: Sendable, Equatable {
    package var clients: Int
    package var users: Int
}

/// A part of a room's history.
package struct RoomHistoryPage: Sendable {
    package var publications: [Publication]
    package var position: StreamPosition
    /// Whether the last publications that were asked for are left out, because the answer would be too large.
    package var isCut = false
}

/// Rooms of this process alone.
final class LocalBroker: RoomBroker {
    private unowned let rooms: LoopRooms

    init(_ rooms: LoopRooms) {
        self.rooms = rooms
    }

    var isBehind: Bool { false }
    var isAway: Bool { false }

    func stop() {}
    func loopsCaughtUp() {}

    /// Its rooms are always open.
    func open(_ room: SharedRoom) {}

    func publish(
        _ message: RoomPublication, in room: SharedRoom,
        _ complete: @escaping (Result<RoomPublished, RoomBrokerError>) -> Void
    ) {
        let published = room.publish(
            message.publication, plain: message.plain, origin: message.origin, skipsHistory: message.skipsHistory,
            idempotencyKey: message.idempotencyKey, now: self.rooms.now,
            time: UInt64(clamping: Machine.wallClockMilliseconds()))
        self.rooms.hub.boundHistories()
        self.rooms.distribute(published.loops, of: room)
        complete(.success(RoomPublished(position: published.position, isRepeated: published.isRepeated)))
    }

    /// `SharedRoom.join` and `leave` have told it.
    func entered(_ room: SharedRoom, _ info: ClientInfo, _ complete: @escaping () -> Void) { complete() }
    func left(_ room: SharedRoom, _ info: ClientInfo) {}

    func presence(of room: SharedRoom, _ complete: @escaping (Result<[ClientInfo], RoomBrokerError>) -> Void) {
        let clients = room.presence.all(upTo: RoomHub.presenceLimit)
        complete(clients.map { .success($0) } ?? .failure(.tooLarge))
    }

    func presenceCounts(
        of room: SharedRoom, _ complete: @escaping (Result<RoomPresenceCounts, RoomBrokerError>) -> Void
    ) {
        let presence = room.presence
        complete(.success(RoomPresenceCounts(clients: presence.clientCount, users: presence.userCount)))
    }

    func history(
        of room: SharedRoom, _ request: Command.HistoryRequest, while isWanted: @escaping () -> Bool,
        _ complete: @escaping (Result<RoomHistoryPage, RoomBrokerError>) -> Void
    ) {
        do {
            let (publications, position) = try room.history(request, now: self.rooms.now)
            complete(.success(RoomHistoryPage(publications: publications, position: position)))
        } catch {
            complete(.failure(.unrecoverablePosition))
        }
    }

    func removeHistory(of room: SharedRoom, _ complete: @escaping (Result<Void, RoomBrokerError>) -> Void) {
        room.removeHistory()
        complete(.success(()))
    }

    func removePublication(
        of room: SharedRoom, offset: UInt64, _ complete: @escaping (Result<Bool, RoomBrokerError>) -> Void
    ) {
        complete(.success(room.removePublication(offset: offset)))
    }

    /// The registry of this process has the limit.
    func register(client: String, user: String, limit: Int, _ complete: @escaping (Bool) -> Void) { complete(true) }
    func unregister(client: String, user: String) {}
}
