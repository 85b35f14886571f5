import CommandLineText
import Testing

@Suite("Course of a connection")
struct ConversationTests {
    private func terms(
        messages: Bool, one: Bool = false, patience: Duration? = nil, endsWithPeer: Bool = false
    ) -> Conversation.Terms {
        var terms = Conversation.Terms(carriesMessages: messages)
        terms.wantsOneAnswer = one
        terms.patience = patience
        terms.endsWithPeer = endsWithPeer
        return terms
    }

    private func orders(_ terms: Conversation.Terms, _ events: Conversation.Event...) -> [[Conversation.Order]] {
        var conversation = Conversation(terms)
        return events.map { conversation.happened($0) }
    }

    @Test func messagesEndWhenNothingComesAnyMore() {
        let orders = self.orders(
            self.terms(messages: true, patience: .seconds(1)), .opened, .inputEnded, .silent, .outputEnded, .closed)
        #expect(orders == [[.begin], [.awaitSilence(.seconds(1))], [.end, .awaitClosing], [], [.finish]])
    }

    @Test func messagesEndAtOnceWithoutPatience() {
        let orders = self.orders(self.terms(messages: true, patience: .zero), .opened, .inputEnded)
        #expect(orders == [[.begin], [.end, .awaitClosing]])
    }

    @Test func whoWaitsForThePeerDoesNothingAtTheEndOfTheInput() {
        let orders = self.orders(self.terms(messages: true), .opened, .inputEnded, .closed, .outputEnded)
        #expect(orders == [[.begin], [], [], [.finish]])
    }

    @Test func whatCameIsWrittenOutBeforeTheEnd() {
        let orders = self.orders(self.terms(messages: true), .opened, .closed, .inputEnded, .outputEnded)
        #expect(orders == [[.begin], [], [], [.finish]])
    }

    @Test func aStreamEndsInOneDirectionAfterTheOther() {
        let stream = self.terms(messages: false)
        #expect(
            self.orders(stream, .opened, .inputEnded, .outputEnded, .closed)
                == [[.begin], [.end], [.end, .leave, .awaitClosing], [.finish]])
        #expect(
            self.orders(stream, .opened, .outputEnded, .inputEnded, .closed)
                == [[.begin], [], [.end, .leave, .awaitClosing], [.finish]])
    }

    @Test func whoLeavesAStreamOfSomebodyElseEndsNothing() {
        var stream = self.terms(messages: false)
        stream.staysWithoutUs = true
        #expect(
            self.orders(stream, .opened, .interrupted, .outputEnded, .closed)
                == [[.begin], [.leave, .awaitClosing], [], [.finish]])
        #expect(
            self.orders(stream, .opened, .inputEnded, .closed, .outputEnded) == [[.begin], [.end], [], [.finish]])
    }

    @Test func aPersonIsNotKeptBehindThePeersEnd() {
        let orders = self.orders(self.terms(messages: false, endsWithPeer: true), .opened, .outputEnded)
        #expect(orders == [[.begin], [.end, .leave, .awaitClosing]])
    }

    @Test(arguments: [true, false])
    func oneAnswerIsEnough(_ messages: Bool) {
        var conversation = Conversation(self.terms(messages: messages, one: true))
        #expect(conversation.happened(.opened) == [.begin])
        #expect(conversation.happened(.inputEnded) == [])
        #expect(conversation.lacksAnswer)
        #expect(conversation.happened(.answered).first == .end)
        #expect(!conversation.lacksAnswer)
        #expect(conversation.happened(.outputEnded) == [])
        #expect(conversation.happened(.closed) == [.finish])
    }

    @Test(arguments: [true, false])
    func anAnswerIsMissedWhenThePatienceIsOver(_ messages: Bool) {
        var conversation = Conversation(self.terms(messages: messages, one: true, patience: .seconds(2)))
        _ = conversation.happened(.opened)
        #expect(conversation.happened(.inputEnded) == [.awaitSilence(.seconds(2))])
        #expect(conversation.happened(.silent).first == .end)
        #expect(conversation.lacksAnswer)
    }

    @Test(arguments: [true, false])
    func aSecondInterruptionIsNotPatient(_ messages: Bool) {
        var conversation = Conversation(self.terms(messages: messages))
        _ = conversation.happened(.opened)
        #expect(conversation.happened(.interrupted).contains(.awaitClosing))
        #expect(conversation.wasInterrupted && !conversation.wasAborted)
        #expect(conversation.happened(.interrupted) == [.abort, .finish])
        #expect(conversation.wasAborted)
    }

    @Test func theDeadlineBoundsTheEnd() {
        let orders = self.orders(self.terms(messages: true), .opened, .deadlinePassed, .interrupted, .deadlinePassed)
        #expect(orders == [[.begin], [], [.end, .awaitClosing], [.abort, .finish]])
    }

    @Test func theDeadlineIsNotForWhoReadsWhatCame() {
        let orders = self.orders(
            self.terms(messages: true, patience: .zero), .opened, .inputEnded, .closed, .deadlinePassed, .outputEnded)
        #expect(orders == [[.begin], [.end, .awaitClosing], [], [], [.finish]])
    }

    @Test func whatNeverOpenedEndsAtOnce() {
        #expect(self.orders(self.terms(messages: true), .closed) == [[.finish]])
        #expect(self.orders(self.terms(messages: false), .interrupted) == [[.abort, .finish]])
    }

    /// Every sequence of five events: it finishes at most once, sends its end only when open, and nothing behind that.
    @Test(arguments: [true, false], [true, false])
    func everyEventIsAnsweredInEveryState(_ messages: Bool, _ one: Bool) {
        let terms = self.terms(messages: messages, one: one, patience: .seconds(1))
        var courses: [(Conversation, [Conversation.Order])] = [(Conversation(terms), [])]
        for _ in 0..<5 {
            courses = courses.flatMap { conversation, orders in
                Conversation.Event.allCases.map { event in
                    var next = conversation
                    let more = next.happened(event)
                    return (next, orders + more)
                }
            }
        }
        for (_, orders) in courses {
            #expect(orders.count { $0 == .finish } <= 1)
            #expect(orders.firstIndex(of: .finish).map { $0 == orders.count - 1 } ?? true)
            #expect(orders.count { $0 == .begin } <= 1)
            if let end = orders.firstIndex(of: .end) { #expect(orders.firstIndex(of: .begin).map { $0 < end } == true) }
        }
    }
}
