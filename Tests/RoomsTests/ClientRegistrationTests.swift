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
        #expect(scene.client.isConnecting && !scene.client.isConnected)
        scene.client.registered(true, at: scene.now)
        guard case .join(let join)? = scene.actions().first else {
            Issue.record("no join")
            return
        }
        #expect(scene.client.isConnecting && join.channel == "a")
        // No ping precedes the reply: its answer would wait with the other commands.
        #expect(scene.client.deadline(at: scene.now) == nil)
        scene.client.joined("a", .success(RoomClient.JoinResult(position: StreamPosition())), at: scene.now)
        guard case .send(.connect(1, _))? = scene.actions().first else {
            Issue.record("no reply")
            return
        }
        #expect(scene.client.deadline(at: scene.now) == .seconds(25))
        // Only one answer counts.
        scene.client.registered(false, at: scene.now)
        #expect(scene.actions().isEmpty && scene.client.isConnected && !scene.client.isConnecting)
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

    @Test func expiryThatTheServerChangesBeforeTheReplyIsInIt() {
        var scene = ClientScene()
        scene.allowsRegistration = nil
        _ = self.connect(&scene, [])
        scene.client.refresh(expiry: 1060, isExpired: false, at: scene.now)
        // Nothing precedes the reply.
        #expect(scene.actions().isEmpty)
        scene.client.registered(true, at: scene.now)
        guard case .send(.connect(1, let result))? = scene.actions().first else {
            Issue.record("no reply")
            return
        }
        #expect(result.expiry == Reply.Expiry(60))
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

    @Test func roomsOfATokenAreEnteredExceptThoseFromWhichTheUserIsBanned() {
        var grant = ConnectionGrant(user: "ann")
        grant.subscriptions = [SubscriptionGrant(channel: "a"), SubscriptionGrant(channel: "b")]
        let authority = BanningAuthority(grant, bannedRooms: ["a"])
        authority.bans.store(true, ordering: .relaxed)
        var scene = ClientScene()
        scene.client = RoomClient(
            identifier: "me", settings: RoomClientSettings(), authority: authority, now: .zero)
        #expect(Self.joined(scene.connect(token: "t")) == ["b"])
        #expect(scene.client.subscribe(SubscriptionGrant(channel: "a")) == .notAvailable)
        scene.client.joined("b", .success(RoomClient.JoinResult(position: StreamPosition())), at: scene.now)
        guard case .send(.connect(1, let result))? = scene.actions().first else {
            Issue.record("no reply")
            return
        }
        #expect(result.subscriptions.map(\.key) == ["b"])
        // Not by the server, either.
        #expect(scene.client.subscribe(SubscriptionGrant(channel: "a")) == .permissionDenied)
        #expect(scene.actions().isEmpty)
        authority.bans.store(false, ordering: .relaxed)
        #expect(scene.client.subscribe(SubscriptionGrant(channel: "a")) == nil)
        #expect(Self.joined(scene.actions()) == ["a"])
    }

    /// Nobody removes a user from a room that it has not entered yet.
    @Test(arguments: [true, false])
    func userWhoIsBannedWhileARoomOpensDoesNotStay(_ isConnecting: Bool) {
        let authority = BanningAuthority()
        var scene = ClientScene()
        scene.client = RoomClient(
            identifier: "me", settings: RoomClientSettings(), authority: authority, now: .zero)
        #expect(Self.joined(self.connect(&scene, self.rooms(isConnecting ? "a" : "b"))).count == 1)
        if !isConnecting {
            scene.client.joined("b", .success(RoomClient.JoinResult(position: StreamPosition())), at: scene.now)
            _ = scene.actions()
            #expect(Self.joined(scene.send(.subscribe(Command.SubscribeRequest(channel: "a")))) == ["a"])
        }
        authority.bans.store(true, ordering: .relaxed)
        scene.client.joined("a", .success(RoomClient.JoinResult(position: StreamPosition())), at: scene.now)
        let actions = scene.actions()
        #expect(actions.first == .leave(channel: "a") && !scene.client.channels.contains("a"))
        guard !isConnecting else {
            guard case .send(.connect(1, let result))? = actions.last else {
                Issue.record("no reply")
                return
            }
            #expect(result.subscriptions.isEmpty)
            return
        }
        #expect(actions.dropFirst() == ClientScene.error(.permissionDenied)[...])
    }

    private static func joined(_ actions: [RoomClient.Action]) -> [String] {
        actions.compactMap { if case .join(let join) = $0 { join.channel } else { nil } }
    }

    /// A room that the client has entered would hear of its coming and going.
    @Test func invalidFilterOfOneRoomEndsTheConnectionBeforeAnyIsEntered() {
        var scene = ClientScene()
        var rooms = self.rooms("a", "b")
        rooms[1].filter = TagFilter.Node()
        #expect(self.connect(&scene, rooms) == [Self.registration, .close(.badRequest)])
    }
}

/// Admits everyone to all rooms, until it bans everyone from some.
private final class BanningAuthority: RoomAuthority {
    let bans = Atomic(false)
    private let grant: ConnectionGrant
    private let bannedRooms: Set<String>
    private let others = ClientScene.authority()

    init(_ grant: ConnectionGrant = ConnectionGrant(), bannedRooms: Set<String> = ["a", "b"]) {
        self.grant = grant
        self.bannedRooms = bannedRooms
    }

    func connection(token: String, now: UInt64) throws(TokenRefusal) -> ConnectionGrant { self.grant }

    func subscription(
        token: String, user: String, client: String, channel: String, now: UInt64
    ) throws(TokenRefusal) -> SubscriptionGrant { throw .invalid }

    func policy(of channel: String) -> RoomPolicy? { self.others.policy(of: channel) }
    func isMuted(user: String, in channel: String) -> Bool { false }
    func isBanned(user: String, from channel: String) -> Bool {
        self.bannedRooms.contains(channel) && self.bans.load(ordering: .relaxed)
    }
}
