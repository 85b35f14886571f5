import Rooms
import Testing

@Suite("Client of the rooms")
struct RoomClientTests {
    private static let data = Payload.json(Array("1".utf8))

    @Test func connectIsAnsweredWithTheIdentifier() {
        var scene = ClientScene()
        var result = Reply.ConnectResult()
        result.client = "me"
        result.pingInterval = 25
        result.expectsPong = true
        #expect(scene.connect() == [.register(ClientInfo(client: "me")), .send(.connect(number: 1, result))])
    }

    /// Clients answer no pings where the reply names no interval, and it has whole seconds.
    @Test func shortIntervalOfPingsIsAnnouncedAsASecond() {
        var scene = ClientScene { $0.pingInterval = .milliseconds(100) }
        guard case .send(.connect(1, let result))? = scene.connect().last else {
            Issue.record("no reply")
            return
        }
        #expect(result.pingInterval == 1 && result.expectsPong)
    }

    @Test(
        arguments: [
            .subscribe(Command.SubscribeRequest(channel: "a")), .publish(channel: "a", data), .presence(channel: "a"),
            .ping,
            .rpc, .refresh(token: "t"),
        ] as [Command.Request])
    func commandBeforeConnectEndsTheConnection(_ request: Command.Request) {
        var scene = ClientScene()
        #expect(scene.send(request) == [.close(.badRequest)])
        #expect(scene.connect().isEmpty && scene.client.isClosed)
    }

    @Test func secondConnectEndsTheConnection() {
        var scene = ClientScene()
        _ = scene.connect()
        #expect(scene.connect() == [.close(.badRequest)])
    }

    @Test func commandWithoutANumberEndsTheConnection() {
        var scene = ClientScene()
        _ = scene.connect()
        #expect(scene.send(.presence(channel: "a"), number: 0) == [.close(.badRequest)])
    }

    @Test func sendAndRPCAreRefusedWithTheirCodes() {
        var scene = ClientScene()
        _ = scene.connect()
        #expect(scene.send(.rpc) == ClientScene.error(.notAvailable))
        #expect(scene.send(.unsupported) == ClientScene.error(.notAvailable))
        #expect(scene.send(.send, number: 0) == [.close(.notAvailable)])
    }

    /// Two names that Unicode calls canonically equivalent would be one room, with the policies of two.
    @Test(
        arguments: [
            ("WOR\u{212A}:1", false), ("e\u{301}", false), ("\u{37E}", false), ("\u{E9}", true), ("நா:한", true),
        ])
    func nameOfARoomIsInUnicodesComposedForm(_ name: String, _ isComposed: Bool) {
        #expect(name.isComposed == isComposed)
        var authority = ClientScene.authority()
        authority.policies[name] = ClientScene.policy()
        let requests: [Command.Request] = [
            .subscribe(Command.SubscribeRequest(channel: name)), .publish(channel: name, Self.data),
            .unsubscribe(channel: name), .presence(channel: name),
        ]
        for request in requests {
            var scene = ClientScene(authority)
            _ = scene.connect()
            #expect((scene.send(request) == ClientScene.error(.badRequest)) != isComposed, "\(request)")
        }
        var scene = ClientScene(authority)
        _ = scene.connect()
        let refreshed = scene.send(.subscriptionRefresh(channel: name, token: "t"))
        #expect(refreshed == (isComposed ? ClientScene.error(.permissionDenied) : [.close(.badRequest)]))
    }

    @Test(.timeLimit(.minutes(1)))
    func longNamesAndEpochsOfManyMarksAreRefusedWithoutComparingThem() {
        let long = String(repeating: "\u{301}\u{323}", count: 200_000)
        for request in [.unsubscribe(channel: long), .presence(channel: long)] as [Command.Request] {
            var scene = ClientScene()
            _ = scene.connect()
            #expect(scene.send(request) == ClientScene.error(.badRequest))
        }
        #expect(StreamPosition.epoch(long) == "-")
        var scene = ClientScene()
        var request = Command.ConnectRequest()
        request.subscriptions = [Command.SubscribeRequest(channel: long), Command.SubscribeRequest(channel: long)]
        let actions = scene.send(.connect(request), number: 1)
        guard case .send(.connect(_, let result))? = actions.last else { return #expect(Bool(false), "\(actions)") }
        #expect(result.subscriptions.isEmpty)
    }

    @Test func tokenDecidesAboutTheConnection() {
        var authority = ClientScene.authority()
        authority.acceptsAnonymous = false
        var grant = ConnectionGrant(user: "ann")
        grant.expiry = 1060
        authority.grants = ["good": grant]
        var scene = ClientScene(authority)
        #expect(scene.connect(token: "bad") == [.close(.invalidToken)])
        scene = ClientScene(authority)
        #expect(scene.connect(token: "expired") == ClientScene.error(.tokenExpired, number: 1))
        let actions = scene.connect(token: "good")
        #expect(actions.first == .register(ClientInfo(user: "ann", client: "me")))
        guard case .send(.connect(_, let result))? = actions.last else {
            Issue.record("no reply")
            return
        }
        #expect(result.expiry.timeToLive == 60)
    }

    @Test func subscriptionIsAnsweredWithThePosition() {
        var scene = ClientScene()
        _ = scene.connect()
        var result = Reply.SubscribeResult()
        result.isRecoverable = true
        result.isPositioned = true
        result.position = StreamPosition(offset: 3, epoch: "e")
        #expect(scene.join("a") == [.send(.subscribe(number: 7, result))])
        #expect(scene.client.channels == ["a"])
    }

    @Test(arguments: [RoomPolicy.Deltas.none, .fossil])
    func deltasAreForClientsThatAskWhereThePolicyAllowsThem(_ deltas: RoomPolicy.Deltas) {
        var scene = ClientScene(ClientScene.authority { $0.deltas = deltas })
        _ = scene.connect()
        for (number, isAsked) in [(2 as UInt32, false), (3, true)] {
            var request = Command.SubscribeRequest(channel: isAsked ? "a" : "b")
            request.wantsDeltas = isAsked
            guard case .join(let join)? = scene.send(.subscribe(request), number: number).last else {
                Issue.record("no join")
                return
            }
            let isGranted = isAsked && deltas == .fossil
            #expect(join.usesDeltas == isGranted)
            scene.client.joined(
                join.channel, .success(RoomClient.JoinResult(position: StreamPosition())), at: scene.now)
            guard case .send(.subscribe(number, let result))? = scene.actions().last else {
                Issue.record("no reply")
                return
            }
            #expect(result.usesDeltas == isGranted)
        }
    }

    @Test func deltasAreNotForSubscriptionsOfTheServer() {
        var scene = ClientScene(ClientScene.authority { $0.deltas = .fossil })
        var request = Command.ConnectRequest()
        request.subscriptions = [Command.SubscribeRequest(channel: "a")]
        request.subscriptions[0].wantsDeltas = true
        guard case .join(let join)? = scene.send(.connect(request), number: 1).last else {
            Issue.record("no join")
            return
        }
        #expect(!join.usesDeltas)
    }

    @Test func recoveryIsAskedOfTheRoom() {
        var scene = ClientScene()
        _ = scene.connect()
        var request = Command.SubscribeRequest(channel: "a")
        request.recovers = true
        request.position = StreamPosition(offset: 1, epoch: "e")
        guard case .join(let join)? = scene.send(.subscribe(request)).first else {
            Issue.record("no join")
            return
        }
        #expect(join.recovery == request.position && join.isPositioned && join.isRecoverable)
        var result = RoomClient.JoinResult(position: StreamPosition(offset: 2, epoch: "e"))
        result.publications = [Publication(Self.data)]
        result.isRecovered = true
        scene.client.joined("a", .success(result), at: scene.now)
        guard case .send(.subscribe(_, let reply))? = scene.actions().first else {
            Issue.record("no reply")
            return
        }
        #expect(reply.wasRecovering && reply.isRecovered && reply.publications.count == 1)
        #expect(reply.position == request.position)
    }

    @Test func clientThatRejectsLossIsRefusedWhereItCannotRecover() {
        var scene = ClientScene()
        _ = scene.connect()
        var request = Command.SubscribeRequest(channel: "a")
        (request.recovers, request.rejectsLoss) = (true, true)
        guard case .join(let join)? = scene.send(.subscribe(request)).first else {
            Issue.record("no join")
            return
        }
        #expect(join.rejectsLoss)
        scene.client.joined("a", .failure(.unrecoverablePosition), at: scene.now)
        #expect(scene.actions() == ClientScene.error(.unrecoverablePosition))
        #expect(scene.client.channels.isEmpty && scene.join("a").count == 1)
    }

    @Test func refusedSubscriptionsHaveTheirCodes() {
        var scene = ClientScene(ClientScene.authority()) {
            $0.maximumSubscriptions = 1
            $0.maximumChannelLength = 4
        }
        _ = scene.connect()
        #expect(scene.join("x") == ClientScene.error(.unknownChannel))
        #expect(scene.join("aaaaa") == ClientScene.error(.badRequest))
        #expect(scene.join("a\n") == ClientScene.error(.badRequest))
        _ = scene.join("a")
        #expect(scene.join("a") == ClientScene.error(.alreadySubscribed))
        #expect(scene.join("b") == ClientScene.error(.limitExceeded))
        #expect(scene.join("") == [.leave(channel: "a"), .close(.badRequest)])
    }

    @Test func failedJoinLeavesTheChannelFree() {
        var scene = ClientScene()
        _ = scene.connect()
        _ = scene.send(.subscribe(Command.SubscribeRequest(channel: "a")))
        scene.client.joined("a", .failure(.limitExceeded), at: scene.now)
        #expect(scene.actions() == ClientScene.error(.limitExceeded))
        #expect(scene.join("a").count == 1 && scene.client.channels == ["a"])
    }

    @Test(
        arguments: [
            (.everyone, "", "", true), (.users, "", "", false), (.users, "ann", "", true), (.token, "ann", "", false),
            (.token, "ann", "sub", true), (.nobody, "ann", "", false), (.nobody, "ann", "sub", false),
        ] as [(RoomPolicy.Permission, String, String, Bool)])
    func policyDecidesWhoEnters(_ permission: RoomPolicy.Permission, _ user: String, _ token: String, _ isAllowed: Bool)
    {
        var authority = ClientScene.authority { $0.subscribe = permission }
        authority.grants = ["t": ConnectionGrant(user: user)]
        authority.subscriptions = ["sub": SubscriptionGrant(channel: "a")]
        var scene = ClientScene(authority)
        _ = scene.connect(token: "t")
        _ = scene.join("a", token: token)
        #expect(scene.client.channels == (isAllowed ? ["a"] : []))
    }

    @Test func subscriptionTokenMustFit() {
        var authority = ClientScene.authority()
        authority.subscriptions = ["sub": SubscriptionGrant(channel: "a")]
        var scene = ClientScene(authority)
        _ = scene.connect()
        #expect(scene.join("b", token: "nonsense") == ClientScene.error(.permissionDenied))
        #expect(scene.join("a", token: "expired") == ClientScene.error(.tokenExpired))
        _ = scene.join("a", token: "sub")
        #expect(scene.client.channels == ["a"])
        #expect(scene.join("b", token: "sub") == [.leave(channel: "a"), .close(.invalidToken)])
    }

    @Test func whatHasExpiredAlreadyIsRefusedWhateverItsToken() {
        var authority = ClientScene.authority()
        var (early, late) = (ConnectionGrant(user: "ann"), ConnectionGrant(user: "ann"))
        (early.expiry, late.expiry) = (999, 2000)
        authority.grants = ["early": early, "late": late]
        var (ended, open) = (SubscriptionGrant(channel: "a"), SubscriptionGrant(channel: "a"))
        (ended.expiry, open.expiry) = (999, 2000)
        authority.subscriptions = ["ended": ended, "open": open]
        var scene = ClientScene(authority)
        #expect(scene.connect(token: "early") == ClientScene.error(.expired, number: 1))
        var receiver = ClientScene(authority, onlyReceives: true)
        #expect(receiver.connect(token: "early") == [.close(.expired)])
        _ = scene.connect(token: "late")
        #expect(scene.client.isConnected)
        #expect(scene.send(.refresh(token: "early")) == ClientScene.error(.expired))
        #expect(scene.join("a", token: "ended") == ClientScene.error(.expired))
        _ = scene.join("a", token: "open")
        #expect(scene.send(.subscriptionRefresh(channel: "a", token: "ended")) == ClientScene.error(.expired))
        #expect(scene.client.channels == ["a"])
    }

    @Test(
        arguments: [
            (.everyone, false, true), (.members, false, false), (.members, true, true), (.users, true, false),
            (.token, true, false), (.nobody, true, false),
        ] as [(RoomPolicy.Permission, Bool, Bool)])
    func policyDecidesWhoPublishes(_ permission: RoomPolicy.Permission, _ isMember: Bool, _ isAllowed: Bool) {
        var scene = ClientScene(ClientScene.authority { $0.publish = permission })
        _ = scene.connect()
        if isMember { _ = scene.join("a") }
        let actions = scene.send(.publish(channel: "a", Self.data))
        let wanted: [RoomClient.Action] =
            isAllowed
            ? [.publish(number: 7, channel: "a", Self.data, ClientInfo(client: "me"))]
            : ClientScene.error(.permissionDenied)
        #expect(actions == wanted && scene.client.pendingCount == (isAllowed ? 1 : 0))
    }

    @Test func mutedUserMayNotPublishAndBannedOneMayNotEnter() {
        var authority = ClientScene.authority { $0.publish = .everyone }
        authority.grants = ["t": ConnectionGrant(user: "ann")]
        authority.muted = ["ann"]
        var scene = ClientScene(authority)
        _ = scene.connect(token: "t")
        _ = scene.join("a")
        #expect(scene.client.channels == ["a"])
        #expect(scene.send(.publish(channel: "a", Self.data)) == ClientScene.error(.permissionDenied))
        authority.banned = ["ann"]
        scene = ClientScene(authority)
        _ = scene.connect(token: "t")
        #expect(scene.join("a") == ClientScene.error(.permissionDenied))
    }

    @Test func largeAndFrequentPublicationsAreRefused() {
        var scene = ClientScene(
            ClientScene.authority {
                $0.publish = .everyone
                $0.maximumMessageSize = 3
                $0.publicationRate = 2
            })
        _ = scene.connect()
        #expect(scene.send(.publish(channel: "a", .json(Array("1234".utf8)))) == ClientScene.error(.limitExceeded))
        func isRefused() -> Bool {
            scene.send(.publish(channel: "a", Self.data)) == ClientScene.error(.tooManyRequests)
        }
        #expect([isRefused(), isRefused(), isRefused()] == [false, false, true])
        scene.advance(1)
        #expect([isRefused(), isRefused(), isRefused()] == [false, false, true])
    }

    @Test func readingNeedsAPolicyThatKeepsAndPermits() {
        var scene = ClientScene(ClientScene.authority { $0.hasPresence = false })
        _ = scene.connect()
        #expect(scene.send(.presence(channel: "a")) == ClientScene.error(.notAvailable))
        var request = Command.HistoryRequest()
        request.channel = "a"
        #expect(scene.send(.history(request)) == ClientScene.error(.permissionDenied))
        _ = scene.join("a")
        request.limit = -1
        var limited = request
        limited.limit = 1000
        #expect(scene.send(.history(request)) == [.history(number: 7, limited)])
        #expect(scene.send(.presenceStats(channel: "x")) == ClientScene.error(.unknownChannel))
    }

    @Test func historyBeforeTheFirstPublicationIsABadRequest() {
        var scene = ClientScene()
        _ = scene.connect()
        _ = scene.join("a")
        var request = Command.HistoryRequest()
        request.channel = "a"
        request.limit = 5
        request.since = StreamPosition(epoch: "e")
        #expect(scene.send(.history(request)) == [.history(number: 7, request)])
        request.isReversed = true
        #expect(scene.send(.history(request)) == ClientScene.error(.badRequest))
        request.since?.offset = 1
        #expect(scene.send(.history(request)) == [.history(number: 7, request)])
    }

    @Test func deltasOfAnUnknownFormatEndTheConnection() {
        var scene = ClientScene()
        _ = scene.connect()
        var request = Command.SubscribeRequest(channel: "a")
        request.wantsUnknownDeltas = true
        #expect(scene.send(.subscribe(request)) == [.close(.badRequest)])
    }

    /// Otherwise it would follow the room by its history.
    @Test func bannedUserReadsNothingOfTheRoom() {
        var authority = ClientScene.authority { $0.read = .everyone }
        authority.grants = ["ann": ConnectionGrant(user: "ann"), "bob": ConnectionGrant(user: "bob")]
        authority.banned = ["ann"]
        var history = Command.HistoryRequest()
        history.channel = "a"
        let commands: [Command.Request] = [.history(history), .presence(channel: "a"), .presenceStats(channel: "a")]
        for user in ["ann", "bob"] {
            var scene = ClientScene(authority)
            _ = scene.connect(token: user)
            let refused = commands.count { scene.send($0) == ClientScene.error(.permissionDenied) }
            #expect(refused == (user == "ann" ? 3 : 0))
        }
    }

    // MARK: Time

    @Test func connectionWithoutConnectIsStale() {
        var scene = ClientScene()
        #expect(scene.client.deadline(at: scene.now) == .seconds(10))
        scene.advance(9)
        scene.client.timerFired(at: scene.now)
        #expect(scene.actions().isEmpty)
        scene.advance(1)
        scene.client.timerFired(at: scene.now)
        #expect(scene.actions() == [.close(.stale)])
    }

    @Test func clientWithThePingsOfItsWebSocketGetsNoOthers() {
        var scene = ClientScene { $0.sendsPings = false }
        var result = Reply.ConnectResult()
        result.client = "me"
        #expect(scene.connect().last == .send(.connect(number: 1, result)))
        #expect(scene.client.deadline(at: scene.now) == nil)
        scene.advance(100)
        scene.client.timerFired(at: scene.now)
        #expect(scene.actions().isEmpty)
    }

    @Test func pingsMustBeAnswered() {
        var scene = ClientScene()
        _ = scene.connect()
        #expect(scene.client.deadline(at: scene.now) == .seconds(25))
        scene.advance(25)
        scene.client.timerFired(at: scene.now)
        #expect(scene.actions() == [.send(.ping)])
        #expect(scene.client.deadline(at: scene.now) == .seconds(33))
        #expect(scene.send(.pong, number: 0).isEmpty)
        #expect(scene.client.deadline(at: scene.now) == .seconds(50))
        scene.advance(25)
        scene.client.timerFired(at: scene.now)
        #expect(scene.actions() == [.send(.ping)])
        scene.advance(8)
        scene.client.timerFired(at: scene.now)
        #expect(scene.actions() == [.close(.noPong)])
    }

    @Test func pingMayBeAnsweredLateByAClientThatIsNotRead() {
        var scene = ClientScene()
        _ = scene.connect()
        scene.advance(25)
        scene.client.timerFired(at: scene.now)
        #expect(scene.actions() == [.send(.ping)])
        scene.advance(8)
        scene.client.timerFired(at: scene.now, mayAnswerLater: true)
        #expect(scene.actions().isEmpty && scene.client.deadline(at: scene.now) == .seconds(41))
        scene.advance(8)
        scene.client.timerFired(at: scene.now)
        #expect(scene.actions() == [.close(.noPong)])
    }

    @Test func expiredTokenEndsTheConnectionUnlessItIsRenewed() {
        var authority = ClientScene.authority()
        var grant = ConnectionGrant(user: "ann")
        grant.expiry = 1060
        var renewed = grant
        renewed.expiry = 1200
        authority.grants = ["good": grant, "renewed": renewed, "other": ConnectionGrant(user: "bob")]
        var scene = ClientScene(authority) { ($0.pingInterval, $0.version) = (.seconds(10_000), "7.1") }
        _ = scene.connect(token: "good")
        #expect(scene.client.deadline(at: scene.now) == .seconds(60))
        scene.advance(60)
        #expect(scene.client.deadline(at: scene.now) == .seconds(85))
        scene.advance(20)
        var late = scene
        #expect(late.send(.refresh(token: "expired")) == [.close(.expired)])
        #expect(
            scene.send(.refresh(token: "renewed")) == [
                .send(.refresh(number: 7, client: "me", version: "7.1", Reply.Expiry(120)))
            ])
        scene.advance(100)
        scene.client.timerFired(at: scene.now)
        #expect(scene.actions().isEmpty)
        var other = scene
        #expect(other.send(.refresh(token: "other")) == [.close(.invalidToken)])
        scene.advance(45)
        scene.client.timerFired(at: scene.now)
        #expect(scene.actions() == [.close(.expired)])
    }

    @Test func renewedTokenKeepsWhatItDoesNotSay() {
        var authority = ClientScene.authority()
        var grant = ConnectionGrant(user: "ann")
        grant.info = .json(Array("1".utf8))
        authority.grants = ["good": grant, "bare": ConnectionGrant(user: "ann")]
        var scene = ClientScene(authority)
        _ = scene.connect(token: "good")
        _ = scene.send(.refresh(token: "bare"))
        #expect(scene.client.info.connectionInfo == grant.info)
    }

    @Test(
        arguments: [
            (["a"], [], true), (["a"], ["a", "b"], true), (["a", "b"], ["b", "a"], false), ([], ["a"], true),
            // Of a room that was not entered nothing changes.
            (["a", "no"], ["a"], false),
        ] as [([String], [String], Bool)])
    func renewedTokenWithOtherRoomsMakesTheClientConnectAgain(
        _ former: [String], _ renewed: [String], _ isClosed: Bool
    ) {
        var authority = ClientScene.authority()
        for (token, rooms) in [("former", former), ("renewed", renewed)] {
            var grant = ConnectionGrant(user: "ann")
            grant.subscriptions = rooms.map { SubscriptionGrant(channel: $0) }
            authority.grants[token] = grant
        }
        var scene = ClientScene(authority)
        for case .join(let join) in scene.connect(token: "former") {
            scene.client.joined(
                join.channel, .success(RoomClient.JoinResult(position: StreamPosition())), at: scene.now)
        }
        _ = scene.actions()
        #expect(scene.client.isConnected)
        let actions = scene.send(.refresh(token: "renewed"))
        #expect(actions.contains(.close(.insufficientState)) == isClosed && scene.client.isClosed == isClosed)
    }

    @Test func expiryBeyondTheClockNeverEnds() {
        var authority = ClientScene.authority()
        var grant = ConnectionGrant(user: "ann")
        grant.expiry = .max
        authority.grants = ["good": grant]
        var scene = ClientScene(authority)
        _ = scene.connect(token: "good")
        scene.advance(20)
        scene.client.timerFired(at: scene.now)
        #expect(scene.actions().isEmpty && scene.client.deadline(at: scene.now) == .seconds(25))
    }

    @Test func expiredSubscriptionEndsAloneUnlessItIsRenewed() {
        var authority = ClientScene.authority()
        var grant = SubscriptionGrant(channel: "a")
        grant.expiry = 1060
        var renewed = grant
        renewed.expiry = 1100
        authority.subscriptions = ["sub": grant, "renewed": renewed]
        var scene = ClientScene(authority) { $0.pingInterval = .seconds(10_000) }
        _ = scene.connect()
        _ = scene.join("a", token: "sub")
        scene.advance(70)
        #expect(
            scene.send(.subscriptionRefresh(channel: "a", token: "renewed"))
                == [.send(.subscriptionRefresh(number: 7, Reply.Expiry(30)))])
        #expect(
            scene.send(.subscriptionRefresh(channel: "b", token: "renewed")) == ClientScene.error(.permissionDenied))
        #expect(scene.send(.subscriptionRefresh(channel: "a", token: "")) == ClientScene.error(.badRequest))
        var other = scene
        #expect(
            other.send(.subscriptionRefresh(channel: "a", token: "nonsense"))
                == [.leave(channel: "a"), .close(.invalidToken)])
        scene.advance(54)
        scene.client.timerFired(at: scene.now)
        #expect(scene.actions().isEmpty)
        scene.advance(1)
        scene.client.timerFired(at: scene.now)
        #expect(scene.actions() == [.leave(channel: "a"), .send(.push(channel: "a", .unsubscribe(.expired)))])
        #expect(!scene.client.isClosed)
    }

    @Test func floodOfCommandsEndsTheConnection() {
        var scene = ClientScene(ClientScene.authority()) { $0.commandRate = 5 }
        _ = scene.connect()
        var last: [RoomClient.Action] = []
        for _ in 0..<5 { last = scene.send(.ping) }
        #expect(last == [.close(.tooManyRequests)])
    }

    @Test func emptyCommandsThatAnswerNoPingCountAsCommands() {
        var scene = ClientScene { $0.commandRate = 10 }
        _ = scene.connect()
        var actions: [RoomClient.Action] = []
        for _ in 0..<9 { actions += scene.send(.pong, number: 0) }
        #expect(actions.isEmpty)
        #expect(scene.send(.pong, number: 0) == [.close(.tooManyRequests)])
    }

    @Test func tooManyErrorsEndTheConnection() {
        var scene = ClientScene(ClientScene.authority()) { $0.maximumErrors = 3 }
        _ = scene.connect()
        for _ in 0..<3 { #expect(scene.send(.rpc) == ClientScene.error(.notAvailable)) }
        #expect(scene.send(.rpc) == ClientScene.error(.notAvailable) + [.close(.tooManyErrors)])
    }
}
