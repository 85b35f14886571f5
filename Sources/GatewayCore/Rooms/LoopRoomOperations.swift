import Rooms

typealias RoomCompletion<Value> = (Result<Value, RoomBrokerError>) -> Void

/// Operations of the server on a room, on the room's home loop: `RoomHub.home`. `RoomOperations` calls them from outside
/// the loops. Each completion is called once, perhaps before the call returns.
extension LoopGateway {
    /// Permissions do not apply.
    package func publish(
        _ publication: Publication, in name: String, skipsHistory: Bool = false, idempotencyKey: String? = nil,
        _ complete: @escaping (Result<StreamPosition, RoomBrokerError>) -> Void
    ) {
        self.withRoom(name, complete) { rooms, room, complete in
            let message = RoomPublication(
                publication: publication, skipsHistory: skipsHistory, idempotencyKey: idempotencyKey)
            rooms.publish(message, in: room, by: nil) { complete($0.map(\.position)) }
        }
    }

    package func removeHistory(
        of name: String, _ complete: @escaping (Result<Void, RoomBrokerError>) -> Void
    ) {
        self.withRoom(name, complete) { $0.broker.removeHistory(of: $1, $2) }
    }

    /// - Parameter complete: with whether the publication was there.
    package func removePublication(
        of name: String, offset: UInt64, _ complete: @escaping (Result<Bool, RoomBrokerError>) -> Void
    ) {
        self.withRoom(name, complete) { $0.broker.removePublication(of: $1, offset: offset, $2) }
    }

    func presence(of name: String, _ complete: @escaping RoomCompletion<[ClientInfo]>) {
        self.withRoom(name, complete) { $0.broker.presence(of: $1, $2) }
    }

    func presenceCounts(of name: String, _ complete: @escaping RoomCompletion<RoomPresenceCounts>) {
        self.withRoom(name, complete) { $0.broker.presenceCounts(of: $1, $2) }
    }

    func history(
        of name: String, _ request: Command.HistoryRequest, _ complete: @escaping RoomCompletion<RoomHistoryPage>
    ) {
        self.withRoom(name, complete) { $0.broker.history(of: $1, request, while: { true }, $2) }
    }

    /// Runs `body` with the room, which is kept until its completion.
    private func withRoom<Value>(
        _ name: String, _ complete: @escaping RoomCompletion<Value>,
        _ body: (LoopRooms, SharedRoom, @escaping RoomCompletion<Value>) -> Void
    ) {
        let hub = self.rooms.hub
        guard let room = try? self.rooms.acquire(name, for: nil) else { return complete(.failure(.tooManyRooms)) }
        body(self.rooms, room) { result in
            hub.release(room)
            complete(result)
        }
    }
}
