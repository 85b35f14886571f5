import Rooms
import Synchronization
import Testing

@Suite("Registration of a client of the rooms")
struct ClientRegistrationTests {
    private static let registration = RoomClient.Action.register(ClientInfo(client: "me"))

    private func connect(_ scene: inout ClientScene, _ rooms: [Command.SubscribeRequest]) -> [RoomClient.Action] {
        var request = Command.ConnectRequest()
        request.subscriptions = rooms
        return scene.send(.connect(request), number: 1)
    }

    private func rooms(_ names: String...) -> [Command.SubscribeRequest] {
        names.map { Command.SubscribeRequest(channel: $0) }
    }

    @Test(arguments: [[], ["a"], ["a", "b"]])
    func refusedConnectionIsOnlyClosed(_ names: [String]) {
        var scene = ClientScene()
        scene.allowsRegistration = false
        let rooms = names.map { Command.SubscribeRequest(channel: $0) }
        #expect(self.connect(&scene, rooms) == [Self.registration, .close(.connectionLimit)])
        #expect(scene.client.isClosed && scene.client.pendingCount == 0)
    }

    @Test func nothingFollowsBeforeTheRegistrationIsAnswered() {
        var scene = ClientScene()
        scene.allowsRegistration = nil
        #expect(self.connect(&scene, self.rooms("a")) == [Self.registration])
        #expect(scene.client.isRegistering && !scene.client.isConnected)
        scene.client.registered(true, at: scene.now)
        guard case .join(let join)? = scene.actions().first else {
            Issue.record("no join")
            return
        }
        #expect(!scene.client.isRegistering && join.channel == "a")
        scene.client.joined("a", .success(RoomClient.JoinResult(position: StreamPosition())), at: scene.now)
        guard case .send(.connect(1, _))? = scene.actions().first else {
            Issue.record("no reply")
            return
        }
        // Only one answer counts.
        scene.client.registered(false, at: scene.now)
        #expect(scene.actions().isEmpty && scene.client.isConnected)
    }

    @Test func connectionThatEndsBeforeTheAnswerEntersNoRoom() {
        var scene = ClientScene()
        scene.allowsRegistration = nil
        _ = self.connect(&scene, self.rooms("a"))
        scene.client.connectionEnded()
        scene.client.registered(true, at: scene.now)
        #expect(scene.actions().isEmpty && scene.client.isClosed)
    }

    @Test func tokenThatExpiresBeforeTheAnswerEndsTheConnection() {
        var authority = ClientScene.authority()
        var grant = ConnectionGrant(user: "ann")
        grant.expiry = 1001
        authority.grants = ["good": grant]
        var scene = ClientScene(authority) { $0.refreshDelay = .zero }
        scene.allowsRegistration = nil
        _ = scene.connect(token: "good")
        #expect(scene.client.deadline(at: scene.now) == .seconds(1))
        scene.advance(1)
        scene.client.timerFired(at: scene.now)
        #expect(scene.actions() == [.close(.expired)])
    }

    /// What a user may do can change before the answer.
    @Test func roomFromWhichTheUserIsBannedMeanwhileIsNotEntered() {
        let authority = BanningAuthority()
        var scene = ClientScene()
        scene.client = RoomClient(
            identifier: "me", settings: RoomClientSettings(), authority: authority, now: .zero)
        scene.allowsRegistration = nil
        #expect(self.connect(&scene, self.rooms("a")) == [Self.registration])
        authority.bans.store(true, ordering: .relaxed)
        scene.client.registered(true, at: scene.now)
        guard case .send(.connect(1, let result))? = scene.actions().first else {
            Issue.record("no reply")
            return
        }
        #expect(result.subscriptions.isEmpty)
    }

    /// A room that the client has entered would hear of its coming and going.
    @Test func invalidFilterOfOneRoomEndsTheConnectionBeforeAnyIsEntered() {
        var scene = ClientScene()
        var rooms = self.rooms("a", "b")
        rooms[1].filter = TagFilter.Node()
        #expect(self.connect(&scene, rooms) == [Self.registration, .close(.badRequest)])
    }
}

/// Admits everyone to all rooms, until it bans everyone.
private final class BanningAuthority: RoomAuthority {
    let bans = Atomic(false)
    private let others = ClientScene.authority()

    func connection(token: String, now: UInt64) throws(TokenRefusal) -> ConnectionGrant {
        try self.others.connection(token: token, now: now)
    }

    func subscription(
        token: String, user: String, client: String, channel: String, now: UInt64
    ) throws(TokenRefusal) -> SubscriptionGrant { throw .invalid }

    func policy(of channel: String) -> RoomPolicy? { self.others.policy(of: channel) }
    func isMuted(user: String, in channel: String) -> Bool { false }
    func isBanned(user: String, from channel: String) -> Bool { self.bans.load(ordering: .relaxed) }
}
