import RedisEngine
import Testing

@Suite("Subscriptions and pushes")
struct SubscriptionTests {
    private typealias Event = RedisConnection.Event

    private func changed(
        _ channel: String?, _ count: Int, _ subscription: RedisSubscription = .channel, ends: Bool = false,
        completes: RedisCommandID? = nil
    ) -> RedisConnection.Event {
        .push(
            .subscriptionChanged(
                subscription, isSubscribed: !ends, channel: channel.map { Array($0.utf8) }, count: count),
            completes: completes)
    }

    private func message(
        _ channel: String, _ payload: String, _ subscription: RedisSubscription = .channel, pattern: String? = nil
    ) -> RedisConnection.Event {
        .push(
            .message(
                subscription, channel: Array(channel.utf8), pattern: pattern.map { Array($0.utf8) },
                payload: Array(payload.utf8)),
            completes: nil)
    }

    @Test func lastConfirmationCompletesTheCommand() throws {
        var harness = ConnectionHarness.ready()
        let id = try harness.subscribe(.channel, "news", "sport")
        #expect(harness.sent() == wire("SUBSCRIBE", "news", "sport"))
        #expect(
            harness.receive(RecordedReply.subscribe.bytes)
                == [self.changed("news", 1), self.changed("sport", 2, completes: id)])
        let pattern = try harness.subscribe(.pattern, "n*")
        let shard = try harness.subscribe(.shard, "{lobby}:s")
        #expect(harness.sent() == wire("PSUBSCRIBE", "n*") + wire("SSUBSCRIBE", "{lobby}:s"))
        #expect(
            harness.receive(RecordedReply.subscribePattern.bytes + RecordedReply.subscribeShard.bytes) == [
                self.changed("n*", 3, .pattern, completes: pattern),
                self.changed("{lobby}:s", 1, .shard, completes: shard),
            ])
        #expect(
            harness.receive(RecordedReply.messages.bytes) == [
                self.message("news", "first"), self.message("news", "first", .pattern, pattern: "n*"),
                self.message("{lobby}:s", "shard", .shard),
            ])
    }

    @Test func subscriptionsEndChannelByChannel() throws {
        var harness = ConnectionHarness.ready()
        let id = try harness.subscribe(.channel, "news", "never", isSubscribed: false)
        let shard = try harness.subscribe(.shard, "{lobby}:s", isSubscribed: false)
        #expect(harness.sent() == wire("UNSUBSCRIBE", "news", "never") + wire("SUNSUBSCRIBE", "{lobby}:s"))
        #expect(
            harness.receive(RecordedReply.unsubscribe.bytes + RecordedReply.unsubscribeShard.bytes) == [
                self.changed("news", 2, ends: true), self.changed("never", 2, ends: true, completes: id),
                self.changed("{lobby}:s", 0, .shard, ends: true, completes: shard),
            ])
    }

    @Test func pushesComeBetweenReplies() throws {
        var harness = ConnectionHarness.ready()
        let get = try harness.submit("GET", "n")
        let publish = try harness.submit("PUBLISH", "sport", "own")
        #expect(
            harness.receive(RecordedReply.messageBeforeReply.bytes) == [
                .reply(get, .blob("1")), self.message("sport", "own"), .reply(publish, .number(1)),
            ])
    }

    @Test func commandsGoOnBesideSubscriptionsWithRESP3() throws {
        var harness = ConnectionHarness.ready()
        let subscription = try harness.subscribe(.channel, "a")
        let get = try harness.submit("GET", "x")
        #expect(
            harness.receive(">3\r\n+subscribe\r\n+a\r\n:1\r\n*1\r\n+message\r\n")
                == [self.changed("a", 1, completes: subscription), .reply(get, .array([.simple("message")]))])
    }

    @Test func refusedSubscriptionIsItsReply() throws {
        var harness = ConnectionHarness.ready()
        let moved = try harness.subscribe(.shard, "foo")
        let next = try harness.submit("GET", "a")
        let error = try #require(Readings.of([RecordedReply.movedSubscription.bytes]).values.first)
        #expect(
            harness.receive(RecordedReply.movedSubscription.bytes + Array("_\r\n".utf8))
                == [.reply(moved, error), .reply(next, .null)])
    }

    @Test func replyInPlaceOfAConfirmationEndsTheConnection() throws {
        var harness = ConnectionHarness.ready()
        _ = harness.sent()
        let id = try harness.subscribe(.channel, "a")
        _ = harness.sent()
        #expect(
            harness.receive("+OK\r\n") == [
                .ended(
                    .violation(RedisViolation(.unexpectedReply, at: 0)), RedisAbandonedCommands(uncertain: [id]))
            ])
    }

    @Test func subscriptionThatTheServerEndsCompletesNothing() throws {
        // As when the slot of a shard channel moves to another node.
        var harness = ConnectionHarness.ready()
        let get = try harness.submit("GET", "a")
        let pending = try harness.subscribe(.shard, "x", isSubscribed: false)
        #expect(
            harness.receive(">3\r\n+sunsubscribe\r\n+y\r\n:1\r\n_\r\n>3\r\n+sunsubscribe\r\n+z\r\n:1\r\n")
                == [
                    self.changed("y", 1, .shard, ends: true), .reply(get, .null),
                    self.changed("z", 1, .shard, ends: true),
                ])
        #expect(
            harness.receive(">3\r\n+sunsubscribe\r\n+x\r\n:0\r\n")
                == [self.changed("x", 0, .shard, ends: true, completes: pending)])
        #expect(harness.receive(RecordedReply.unsubscribeNothing.bytes) == [self.changed(nil, 0, ends: true)])
    }

    @Test func invalidationsNameKeysOrAll() {
        var harness = ConnectionHarness.ready()
        #expect(
            harness.receive(RecordedReply.invalidation.bytes + RecordedReply.invalidationOfAll.bytes) == [
                .push(.invalidated(keys: [Array("n".utf8)]), completes: nil),
                .push(.invalidated(keys: nil), completes: nil),
            ])
    }

    @Test func unknownPushesAreReportedByKind() {
        var harness = ConnectionHarness.ready()
        #expect(
            harness.receive(">2\r\n+tracking-redir-broken\r\n:1\r\n")
                == [.push(.other(kind: "tracking-redir-broken"), completes: nil)])
    }

    @Test(arguments: [
        ">1\r\n:1\r\n", ">1\r\n*0\r\n", ">1\r\n+message\r\n", ">3\r\n+message\r\n+a\r\n:1\r\n",
        ">4\r\n+message\r\n+a\r\n+b\r\n+c\r\n", ">3\r\n+pmessage\r\n+a\r\n+b\r\n", ">2\r\n+subscribe\r\n+a\r\n",
        ">3\r\n+subscribe\r\n+a\r\n+x\r\n", ">3\r\n+subscribe\r\n+a\r\n:-1\r\n", ">2\r\n+invalidate\r\n:1\r\n",
        ">1\r\n+invalidate\r\n", ">2\r\n+invalidate\r\n*1\r\n:1\r\n",
    ])
    func malformedPushEndsTheConnection(_ push: String) {
        var harness = ConnectionHarness.ready()
        let violation = RedisViolation(.malformedPush, at: 0)
        #expect(harness.receive(push) == [.ended(.violation(violation), RedisAbandonedCommands())])
    }

    @Test func subscriptionNeedsAChannel() {
        var harness = ConnectionHarness.ready()
        #expect(throws: RedisRefusal.noChannels) { try harness.subscribe(.channel) }
    }

    // MARK: RESP2

    @Test func arraysAreMessagesAfterASubscriptionWithRESP2() throws {
        var harness = ConnectionHarness.readyWithRESP2()
        let before = try harness.submit("LRANGE", "l")
        let id = try harness.subscribe(.channel, "news")
        // The reply of a command before the subscription is an array, whatever it contains.
        #expect(
            harness.receive("*1\r\n$7\r\nmessage\r\n") == [.reply(before, .array([.blob("message")]))])
        #expect(harness.receive(RecordedReply.subscribeRESP2.bytes) == [self.changed("news", 1, completes: id)])
        #expect(harness.receive(RecordedReply.messageRESP2.bytes) == [self.message("news", "second")])
        _ = harness.sent()
        #expect(harness.passTime(.seconds(15)) == nil)
        #expect(harness.sent() == wire("PING"))
        #expect(harness.receive(RecordedReply.pingRESP2.bytes) == [])
    }

    @Test func commandsAreRefusedWhileSubscribedWithRESP2() throws {
        var harness = ConnectionHarness.readyWithRESP2()
        _ = try harness.subscribe(.channel, "news")
        #expect(throws: RedisRefusal.subscribedWithRESP2) { try harness.submit("GET", "a") }
        _ = harness.receive(RecordedReply.subscribeRESP2.bytes)
        #expect(throws: RedisRefusal.subscribedWithRESP2) { try harness.submit("GET", "a") }
        let id = try harness.subscribe(.channel, "news", isSubscribed: false)
        #expect(throws: RedisRefusal.subscribedWithRESP2) { try harness.submit("GET", "a") }
        #expect(
            harness.receive(RecordedReply.unsubscribeRESP2.bytes)
                == [self.changed("news", 0, ends: true, completes: id)])
        let get = try harness.submit("GET", "a")
        #expect(harness.receive("*1\r\n$7\r\nmessage\r\n") == [.reply(get, .array([.blob("message")]))])
    }

    @Test func refusedSubscriptionEndsTheRestrictionOfRESP2() throws {
        var harness = ConnectionHarness.readyWithRESP2()
        let id = try harness.subscribe(.channel, "news")
        #expect(harness.receive("-NOPERM no\r\n") == [.reply(id, .error("NOPERM no"))])
        _ = try harness.submit("GET", "a")
    }
}
