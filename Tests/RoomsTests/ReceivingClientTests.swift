import Rooms
import Testing

@Suite("Clients that only receive, and rooms of the request to connect")
struct ReceivingClientTests {
    @Test func clientThatOnlyReceivesNeedsNoPongs() {
        var scene = ClientScene(onlyReceives: true)
        guard case .send(.connect(_, let result))? = scene.connect().last else {
            Issue.record("no reply")
            return
        }
        #expect(result.pingInterval == 25 && !result.expectsPong)
        for _ in 0..<3 {
            scene.advance(25)
            scene.client.timerFired(at: scene.now)
            #expect(scene.actions() == [.send(.ping)])
            #expect(scene.client.deadline(at: scene.now) == scene.now.elapsed + .seconds(25))
        }
    }

    @Test func expiredTokenOfAClientThatOnlyReceivesEndsTheConnection() {
        var scene = ClientScene(onlyReceives: true)
        #expect(scene.connect(token: "expired") == [.close(.expired)])
    }

    @Test func subscriptionsOfTheRequestAreMadeWhereThePolicyPermits() {
        var authority = ClientScene.authority()
        authority.policies["b"] = ClientScene.policy { $0.subscribe = .token }
        var scene = ClientScene(authority, onlyReceives: true)
        var request = Command.ConnectRequest()
        request.subscriptions = ["a", "b", "c"].map { Command.SubscribeRequest(channel: $0) }
        let actions = scene.send(.connect(request), number: 1)
        let joins = actions.compactMap { if case .join(let join) = $0 { join.channel } else { nil } }
        #expect(joins == ["a"])
        scene.client.joined("a", .success(RoomClient.JoinResult(position: StreamPosition())), at: scene.now)
        guard case .send(.connect(1, let result))? = scene.actions().last else {
            Issue.record("no reply")
            return
        }
        #expect(result.subscriptions.map(\.key) == ["a"])
    }

    @Test func roomThatIsNamedTwiceIsEnteredOnce() {
        var authority = ClientScene.authority()
        var grant = ConnectionGrant(user: "ann")
        grant.subscriptions = [SubscriptionGrant(channel: "a"), SubscriptionGrant(channel: "a")]
        authority.grants = ["good": grant]
        var scene = ClientScene(authority)
        var request = Command.ConnectRequest()
        request.token = "good"
        request.subscriptions = ["b", "a", "b"].map { Command.SubscribeRequest(channel: $0) }
        let actions = scene.send(.connect(request), number: 1)
        let joins = actions.compactMap { if case .join(let join) = $0 { join.channel } else { nil } }
        #expect(joins == ["a", "b"])
    }

    @Test func positionsOfTheLastEventReplaceThoseOfTheRequestAndAddNoRoom() {
        var authority = ClientScene.authority()
        authority.policies["c"] = ClientScene.policy()
        var grant = ConnectionGrant(user: "ann")
        grant.subscriptions = [SubscriptionGrant(channel: "a")]
        authority.grants = ["good": grant]
        var scene = ClientScene(authority, onlyReceives: true)
        var request = Command.ConnectRequest()
        request.token = "good"
        var known = Command.SubscribeRequest(channel: "b")
        (known.recovers, known.position) = (true, StreamPosition(offset: 1, epoch: "e"))
        request.subscriptions = [known]
        request.received = [
            "a": StreamPosition(offset: 5, epoch: "f"), "b": StreamPosition(offset: 2, epoch: "e"),
            "c": StreamPosition(offset: 3, epoch: "e"), "unknown": StreamPosition(offset: 3, epoch: "e"),
        ]
        let joins = scene.send(.connect(request), number: 1).compactMap { action -> RoomClient.Join? in
            if case .join(let join) = action { join } else { nil }
        }
        #expect(joins.map(\.channel) == ["a", "b"])
        let positions = [StreamPosition(offset: 5, epoch: "f"), StreamPosition(offset: 2, epoch: "e")]
        #expect(joins.map(\.recovery) == positions)
    }

    @Test func roomThatTheLastEventDoesNotNameIsRecoveredAsTheRequestSays() {
        var scene = ClientScene(onlyReceives: true)
        var request = Command.ConnectRequest()
        var known = Command.SubscribeRequest(channel: "b")
        (known.recovers, known.position) = (true, StreamPosition(offset: 1, epoch: "e"))
        request.subscriptions = [Command.SubscribeRequest(channel: "a"), known]
        request.received = ["c": StreamPosition(offset: 3, epoch: "e")]
        let joins = scene.send(.connect(request), number: 1).compactMap { action -> RoomClient.Join? in
            if case .join(let join) = action { join } else { nil }
        }
        #expect(joins.map(\.recovery) == [nil, StreamPosition(offset: 1, epoch: "e")])
    }
}
