import StreamTransport

/// The rooms as one loop sees them: its own members.
final class ChatFloor {
    private let hub: ChatHub
    private let index: Int
    private var rooms: [String: [ObjectIdentifier: any ChatHearer]] = [:]

    init(hub: ChatHub, loopIndex: Int) {
        self.hub = hub
        self.index = loopIndex
    }

    func join(_ member: any ChatHearer, room: String) {
        self.rooms[room, default: [:]][ObjectIdentifier(member)] = member
        self.hub.joined(room, onLoop: self.index)
    }

    func leave(_ member: any ChatHearer, room: String) {
        guard self.rooms[room]?.removeValue(forKey: ObjectIdentifier(member)) != nil else { return }
        if self.rooms[room]?.isEmpty == true { self.rooms[room] = nil }
        self.hub.left(room, onLoop: self.index)
    }

    /// Gives a member's message to everyone else in its room.
    func say(_ message: ChatMessage, by member: any ChatHearer, room: String) {
        self.deliver(message, to: room, except: member)
        self.hub.carry(message, to: room, from: self.index) { ChatFloor.current(on: $0) }
    }

    func deliver(_ message: ChatMessage, to room: String, except speaker: (any ChatHearer)?) {
        guard let members = self.rooms[room] else { return }
        for member in members.values where member !== speaker { member.hear(message) }
    }

    /// The floor of the loop that the caller is on; `nil` while the gateway has none.
    static func current(on loop: Loop) -> ChatFloor? {
        loop.local(ChatFloorPlace.self) { ChatFloorPlace() }.floor
    }

    func settle(on loop: Loop) {
        loop.local(ChatFloorPlace.self) { ChatFloorPlace() }.floor = self
    }
}
