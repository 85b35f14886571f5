import Rooms
import Testing

@Suite("Server API operations on a client of the rooms")
struct RoomClientServerTests {
    private static let data = Payload.json(Array("1".utf8))

    @Test func serverSideSubscriptionsComeWithTheConnection() {
        var authority = ClientScene.authority()
        var grant = ConnectionGrant(user: "ann")
        grant.subscriptions = [
            SubscriptionGrant(channel: "b"), SubscriptionGrant(channel: "a"), SubscriptionGrant(channel: "no"),
        ]
        authority.grants = ["good": grant]
        var scene = ClientScene(authority)
        let actions = scene.connect(token: "good")
        #expect(actions.count == 3)
        scene.client.joined("a", .success(RoomClient.JoinResult(position: StreamPosition())), at: scene.now)
        #expect(scene.actions().isEmpty)
        scene.client.joined("b", .failure(.limitExceeded), at: scene.now)
        guard case .send(.connect(1, let result))? = scene.actions().first else {
            Issue.record("no reply")
            return
        }
        #expect(result.subscriptions.map(\.key) == ["a"])
    }

    @Test func serverSubscribesAndUnsubscribesAClient() {
        var scene = ClientScene()
        #expect(scene.client.subscribe(SubscriptionGrant(channel: "a")) == .notAvailable)
        _ = scene.connect()
        #expect(scene.client.subscribe(SubscriptionGrant(channel: "a")) == nil)
        guard case .join? = scene.actions().first else {
            Issue.record("no join")
            return
        }
        scene.client.joined("a", .success(RoomClient.JoinResult(position: StreamPosition())), at: scene.now)
        guard case .send(.push("a", .subscribe))? = scene.actions().first else {
            Issue.record("no push")
            return
        }
        scene.client.unsubscribe("a", .server)
        #expect(scene.actions() == [.leave(channel: "a"), .send(.push(channel: "a", .unsubscribe(.server)))])
        scene.client.unsubscribe("a", .server)
        #expect(scene.actions().isEmpty)
    }

    @Test func clientThatTheServerSubscribesSinceAPositionGetsWhatItMissed() {
        var scene = ClientScene()
        _ = scene.connect()
        let position = StreamPosition(offset: 1, epoch: "e")
        #expect(scene.client.subscribe(SubscriptionGrant(channel: "a"), recovering: position) == nil)
        _ = scene.actions()
        var joined = RoomClient.JoinResult(position: StreamPosition(offset: 3, epoch: "e"))
        joined.publications = [Publication(Self.data), Publication(Self.data)]
        (joined.publications[0].offset, joined.publications[1].offset) = (2, 3)
        joined.isRecovered = true
        scene.client.joined("a", .success(joined), at: scene.now)
        let actions = scene.actions()
        guard case .send(.push("a", .subscribe(let reply)))? = actions.first else {
            Issue.record("no push")
            return
        }
        #expect(reply.position == position)
        let missed = joined.publications.map { RoomClient.Action.send(.push(channel: "a", .publication($0))) }
        #expect(Array(actions.dropFirst()) == missed)
    }

    @Test func roomOfATokenIsRecoveredOnlyIfTheClientAsks() {
        var authority = ClientScene.authority()
        var grant = ConnectionGrant(user: "ann")
        grant.subscriptions = [SubscriptionGrant(channel: "a")]
        authority.grants = ["good": grant]
        for recovers in [false, true] {
            var scene = ClientScene(authority)
            var request = Command.ConnectRequest()
            request.token = "good"
            request.subscriptions = [Command.SubscribeRequest(channel: "a")]
            request.subscriptions[0].recovers = recovers
            guard case .join(let join)? = scene.send(.connect(request), number: 1).last else {
                Issue.record("no join")
                return
            }
            #expect((join.recovery != nil) == recovers)
        }
    }

    @Test(
        arguments: [(.insufficient, .insufficientState), (.expired, .subscriptionExpired)]
            as [(UnsubscribeCode, Disconnect)])
    func subscriptionOfTheServerThatIsLostEndsTheConnection(_ code: UnsubscribeCode, _ disconnect: Disconnect) {
        var scene = ClientScene()
        _ = scene.connect()
        #expect(scene.client.subscribe(SubscriptionGrant(channel: "a")) == nil)
        scene.client.joined("a", .success(RoomClient.JoinResult(position: StreamPosition())), at: scene.now)
        _ = scene.actions()
        scene.client.unsubscribe("a", code)
        #expect(scene.actions() == [.leave(channel: "a"), .close(disconnect)])
    }

    @Test func joinThatCompletesAfterTheEndIsLeft() {
        var scene = ClientScene()
        _ = scene.connect()
        _ = scene.send(.subscribe(Command.SubscribeRequest(channel: "a")))
        scene.client.connectionEnded()
        #expect(scene.actions().isEmpty)
        scene.client.joined("a", .success(RoomClient.JoinResult(position: StreamPosition())), at: scene.now)
        #expect(scene.actions() == [.leave(channel: "a")])
    }

    @Test func unsubscribeDuringAJoinTakesEffectAfterIt() {
        var scene = ClientScene()
        _ = scene.connect()
        _ = scene.send(.subscribe(Command.SubscribeRequest(channel: "a")))
        #expect(scene.send(.unsubscribe(channel: "a"), number: 8).isEmpty)
        scene.client.joined("a", .success(RoomClient.JoinResult(position: StreamPosition())), at: scene.now)
        let actions = scene.actions()
        guard case .send(.subscribe(7, _))? = actions.first else {
            Issue.record("no reply")
            return
        }
        #expect(actions.dropFirst() == [.leave(channel: "a"), .send(.unsubscribe(number: 8))])
        #expect(scene.join("a").count == 1)
    }

    @Test func subscriptionThatTheServerEndsBeforeItsReplyIsAnsweredFirst() {
        var scene = ClientScene()
        _ = scene.connect()
        _ = scene.send(.subscribe(Command.SubscribeRequest(channel: "a")))
        scene.client.unsubscribe("a", .server)
        #expect(scene.actions().isEmpty)
        scene.client.joined("a", .success(RoomClient.JoinResult(position: StreamPosition())), at: scene.now)
        let actions = scene.actions()
        guard case .send(.subscribe(7, _))? = actions.first else {
            Issue.record("no reply")
            return
        }
        #expect(actions.dropFirst() == [.leave(channel: "a"), .send(.push(channel: "a", .unsubscribe(.server)))])
        #expect(scene.client.channels.isEmpty)
    }

    @Test func subscriptionThatTheServerEndsBeforeTheReplyToConnectIsNotInIt() {
        var authority = ClientScene.authority()
        var grant = ConnectionGrant(user: "ann")
        grant.subscriptions = [SubscriptionGrant(channel: "a"), SubscriptionGrant(channel: "b")]
        authority.grants = ["good": grant]
        var scene = ClientScene(authority)
        _ = scene.connect(token: "good")
        let joined = RoomClient.JoinResult(position: StreamPosition())
        // One that has not answered, and one that has.
        scene.client.unsubscribe("a", .server)
        scene.client.joined("a", .success(joined), at: scene.now)
        #expect(scene.actions() == [.leave(channel: "a")])
        scene.client.joined("b", .success(joined), at: scene.now)
        guard case .send(.connect(1, let result))? = scene.actions().first else {
            Issue.record("no reply")
            return
        }
        #expect(result.subscriptions.map(\.key) == ["b"] && scene.client.channels == ["b"])
    }

    @Test func commandsAboutARoomThatHasNotAnsweredKeepTheirOrder() {
        var scene = ClientScene()
        _ = scene.connect()
        let subscribe = Command.Request.subscribe(Command.SubscribeRequest(channel: "a"))
        _ = scene.send(subscribe, number: 2)
        for number in stride(from: 3 as UInt32, to: 8, by: 2) {
            #expect(scene.send(.unsubscribe(channel: "a"), number: number).isEmpty)
            #expect(scene.send(subscribe, number: number + 1).isEmpty)
        }
        #expect(scene.client.pendingCount == 7)
        var replies: [UInt32] = []
        for _ in 0..<4 {
            scene.client.joined("a", .success(RoomClient.JoinResult(position: StreamPosition())), at: scene.now)
            for case .send(let reply) in scene.actions() {
                switch reply {
                case .subscribe(let number, _), .unsubscribe(let number): replies.append(number)
                default: Issue.record("\(reply)")
                }
            }
        }
        #expect(replies == [2, 3, 4, 5, 6, 7, 8])
        #expect(scene.client.pendingCount == 0 && scene.client.channels == ["a"])
    }

    @Test func commandsSentAfterAnEntryWaitForIt() {
        var scene = ClientScene()
        _ = scene.connect()
        var history = Command.HistoryRequest()
        history.channel = "a"
        let requests: [Command.Request] = [
            .publish(channel: "a", Self.data), .presence(channel: "a"), .presenceStats(channel: "a"), .history(history),
            .subscriptionRefresh(channel: "a", token: "t"),
        ]
        func waiting() -> Int { requests.count { scene.client.mustWait(Command(number: 7, $0)) } }
        #expect(waiting() == 0)
        _ = scene.send(.subscribe(Command.SubscribeRequest(channel: "a")))
        #expect(waiting() == requests.count)
        let others: [Command.Request] = [.publish(channel: "b", Self.data), .unsubscribe(channel: "a"), .ping]
        #expect(others.allSatisfy { !scene.client.mustWait(Command(number: 7, $0)) })
        scene.client.joined("a", .failure(.limitExceeded), at: scene.now)
        #expect(waiting() == 0)
    }

    @Test func deferredCommandsEndWithTheConnection() {
        var scene = ClientScene()
        _ = scene.connect()
        _ = scene.send(.subscribe(Command.SubscribeRequest(channel: "a")))
        _ = scene.send(.unsubscribe(channel: "a"))
        scene.client.connectionEnded()
        scene.client.joined("a", .success(RoomClient.JoinResult(position: StreamPosition())), at: scene.now)
        #expect(scene.actions() == [.leave(channel: "a")])
    }

    @Test func endLeavesAllRooms() {
        var scene = ClientScene()
        _ = scene.connect()
        _ = scene.join("b")
        _ = scene.join("a")
        scene.client.connectionEnded()
        #expect(scene.actions() == [.leave(channel: "a"), .leave(channel: "b")])
        scene.client.close(.shutdown)
        #expect(scene.actions().isEmpty && scene.client.deadline(at: scene.now) == nil)
    }

    @Test(arguments: ["line\nbreak", String(repeating: "x", count: 256)])
    func nameThatNoRoomCanHaveIsRefusedInEachCommand(_ channel: String) {
        var authority = ClientScene.authority()
        authority.policies[channel] = ClientScene.policy {
            $0.read = .everyone
            $0.publish = .everyone
        }
        var scene = ClientScene(authority)
        _ = scene.connect()
        var history = Command.HistoryRequest()
        history.channel = channel
        let requests: [Command.Request] = [
            .subscribe(Command.SubscribeRequest(channel: channel)), .publish(channel: channel, Self.data),
            .presence(channel: channel), .presenceStats(channel: channel), .history(history),
        ]
        for request in requests { #expect(scene.send(request) == ClientScene.error(.badRequest)) }
    }

    @Test func replyToConnectIsBoundedWhateverItsRoomsRecover() {
        var scene = ClientScene { $0.maximumRecoverySize = 2000 }
        var request = Command.ConnectRequest()
        request.subscriptions = ["a", "b"].map { Command.SubscribeRequest(channel: $0) }
        for index in request.subscriptions.indices { request.subscriptions[index].recovers = true }
        _ = scene.send(.connect(request), number: 1)
        var joined = RoomClient.JoinResult(position: StreamPosition(offset: 1, epoch: "e"))
        joined.publications = [Publication(.binary([UInt8](repeating: 0, count: 1000)))]
        joined.publications[0].offset = 1
        joined.isRecovered = true
        scene.client.joined("a", .success(joined), at: scene.now)
        scene.client.joined("b", .success(joined), at: scene.now)
        guard case .send(.connect(1, let reply))? = scene.actions().last else {
            Issue.record("no reply")
            return
        }
        #expect(reply.subscriptions.map(\.value.publications.count) == [1, 0])
        #expect(reply.subscriptions.map(\.value.isRecovered) == [true, false])
        #expect(reply.subscriptions.map(\.value.wasRecovering) == [true, true])
        #expect(reply.subscriptions.map(\.value.position.offset) == [0, 1])
    }
}
