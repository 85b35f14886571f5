import CommandLineText
import Testing

@Suite("State machine of a conversation")
struct ConversationTests {
    private func settings(
        messages: Bool, one: Bool = false, idleTimeout: Duration? = nil, endsWithPeer: Bool = false
    ) -> Conversation.Settings {
        var settings = Conversation.Settings(carriesMessages: messages)
        settings.expectsSingleReply = one
        settings.idleTimeout = idleTimeout
        settings.endsWithPeer = endsWithPeer
        return settings
    }

    private func orders(_ settings: Conversation.Settings, _ events: Conversation.Event...) -> [[Conversation.Action]] {
        var conversation = Conversation(settings)
        return events.map { conversation.handle($0) }
    }

    @Test func idleConversationEndsAfterTheInput() {
        let orders = self.orders(
            self.settings(messages: true, idleTimeout: .seconds(1)), .opened, .inputEnded, .idle, .outputEnded, .closed)
        #expect(orders == [[.begin], [.awaitIdle(.seconds(1))], [.closeOutput, .startCloseTimer], [], [.finish]])
    }

    @Test func messagesEndAtOnceWithoutPatience() {
        let orders = self.orders(self.settings(messages: true, idleTimeout: .zero), .opened, .inputEnded)
        #expect(orders == [[.begin], [.closeOutput, .startCloseTimer]])
    }

    @Test func conversationWithoutIdleTimeoutWaitsForThePeerAfterTheInput() {
        let orders = self.orders(self.settings(messages: true), .opened, .inputEnded, .closed, .outputEnded)
        #expect(orders == [[.begin], [], [], [.finish]])
    }

    @Test func receivedDataIsWrittenBeforeTheEnd() {
        let orders = self.orders(self.settings(messages: true), .opened, .closed, .inputEnded, .outputEnded)
        #expect(orders == [[.begin], [], [], [.finish]])
    }

    @Test func streamEndsInOneDirectionAfterTheOther() {
        let stream = self.settings(messages: false)
        #expect(
            self.orders(stream, .opened, .inputEnded, .outputEnded, .closed)
                == [[.begin], [.closeOutput], [.closeOutput, .stopReading, .startCloseTimer], [.finish]])
        #expect(
            self.orders(stream, .opened, .outputEnded, .inputEnded, .closed)
                == [[.begin], [], [.closeOutput, .stopReading, .startCloseTimer], [.finish]])
    }

    @Test func detachingFromAStreamClosesNothing() {
        var stream = self.settings(messages: false)
        stream.outlivesClient = true
        #expect(
            self.orders(stream, .opened, .interrupted, .outputEnded, .closed)
                == [[.begin], [.stopReading, .startCloseTimer], [], [.finish]])
        #expect(
            self.orders(stream, .opened, .inputEnded, .closed, .outputEnded) == [
                [.begin], [.closeOutput], [], [.finish],
            ])
    }

    @Test func interactiveConversationEndsWithThePeer() {
        let orders = self.orders(self.settings(messages: false, endsWithPeer: true), .opened, .outputEnded)
        #expect(orders == [[.begin], [.closeOutput, .stopReading, .startCloseTimer]])
    }

    @Test(arguments: [true, false])
    func oneAnswerIsEnough(_ messages: Bool) {
        var conversation = Conversation(self.settings(messages: messages, one: true))
        #expect(conversation.handle(.opened) == [.begin])
        #expect(conversation.handle(.inputEnded) == [])
        #expect(conversation.isMissingReply)
        #expect(conversation.handle(.replied).first == .closeOutput)
        #expect(!conversation.isMissingReply)
        #expect(conversation.handle(.outputEnded) == [])
        #expect(conversation.handle(.closed) == [.finish])
    }

    @Test(arguments: [true, false])
    func anAnswerIsMissedWhenThePatienceIsOver(_ messages: Bool) {
        var conversation = Conversation(self.settings(messages: messages, one: true, idleTimeout: .seconds(2)))
        _ = conversation.handle(.opened)
        #expect(conversation.handle(.inputEnded) == [.awaitIdle(.seconds(2))])
        #expect(conversation.handle(.idle).first == .closeOutput)
        #expect(conversation.isMissingReply)
    }

    @Test(arguments: [true, false])
    func secondInterruptionEndsAtOnce(_ messages: Bool) {
        var conversation = Conversation(self.settings(messages: messages))
        _ = conversation.handle(.opened)
        #expect(conversation.handle(.interrupted).contains(.startCloseTimer))
        #expect(conversation.wasInterrupted && !conversation.wasAborted)
        #expect(conversation.handle(.interrupted) == [.abort, .finish])
        #expect(conversation.wasAborted)
    }

    @Test func theDeadlineBoundsTheEnd() {
        let orders = self.orders(self.settings(messages: true), .opened, .deadlinePassed, .interrupted, .deadlinePassed)
        #expect(orders == [[.begin], [], [.closeOutput, .startCloseTimer], [.abort, .finish]])
    }

    @Test func closeDeadlineDoesNotInterruptReading() {
        let orders = self.orders(
            self.settings(messages: true, idleTimeout: .zero), .opened, .inputEnded, .closed, .deadlinePassed,
            .outputEnded)
        #expect(orders == [[.begin], [.closeOutput, .startCloseTimer], [], [], [.finish]])
    }

    @Test func connectionThatNeverOpenedEndsAtOnce() {
        #expect(self.orders(self.settings(messages: true), .closed) == [[.finish]])
        #expect(self.orders(self.settings(messages: false), .interrupted) == [[.abort, .finish]])
    }

    /// Every sequence of five events: it finishes at most once, sends its end only when open, and nothing after that.
    @Test(arguments: [true, false], [true, false])
    func everyEventIsAnsweredInEveryState(_ messages: Bool, _ one: Bool) {
        let settings = self.settings(messages: messages, one: one, idleTimeout: .seconds(1))
        var courses: [(Conversation, [Conversation.Action])] = [(Conversation(settings), [])]
        for _ in 0..<5 {
            courses = courses.flatMap { conversation, orders in
                Conversation.Event.allCases.map { event in
                    var next = conversation
                    let more = next.handle(event)
                    return (next, orders + more)
                }
            }
        }
        for (_, orders) in courses {
            #expect(orders.count { $0 == .finish } <= 1)
            #expect(orders.firstIndex(of: .finish).map { $0 == orders.count - 1 } ?? true)
            #expect(orders.count { $0 == .begin } <= 1)
            if let end = orders.firstIndex(of: .closeOutput) {
                #expect(orders.firstIndex(of: .begin).map { $0 < end } == true)
            }
        }
    }
}
