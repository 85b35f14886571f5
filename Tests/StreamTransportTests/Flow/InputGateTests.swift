import StreamTransport
import Testing

@Suite("The input of a transport")
struct InputGateTests {
    private typealias Gate = InputGate

    /// Every event in every state: the state after it, and the action.
    private struct Row<Action: Sendable>: Sendable {
        let before: Gate
        let after: Gate
        let action: Action

        init(_ before: Gate, _ after: Gate, _ action: Action) {
            (self.before, self.after, self.action) = (before, after, action)
        }
    }

    private func check<Action: Equatable>(_ rows: [Row<Action>], _ event: (inout Gate) -> Action) {
        #expect(rows.map(\.before) == Gate.allCases)
        for row in rows {
            var gate = row.before
            let action = event(&gate)
            #expect(gate == row.after && action == row.action, "\(row.before): \(gate), \(action)")
        }
    }

    @Test func gatePauses() {
        self.check([
            Row(.open, .paused, true), Row(.offering, .offeringPaused, true),
            Row(.offeringPaused, .offeringPaused, true), Row(.offeringResumed, .offeringPaused, true),
            Row(.awaitingTurn, .pausedAwaitingTurn, true), Row(.paused, .paused, true),
            Row(.pausedAwaitingTurn, .pausedAwaitingTurn, true), Row(.closed, .closed, true),
        ]) { gate in
            gate.pause()
            return !gate.isReading
        }
    }

    @Test func gateResumesWithNothingKept() {
        self.check(
            [
                Row(.open, .open, .ignore), Row(.offering, .offering, .ignore),
                Row(.offeringPaused, .offeringResumed, .read), Row(.offeringResumed, .offeringResumed, .ignore),
                Row(.awaitingTurn, .awaitingTurn, .ignore), Row(.paused, .open, .read),
                Row(.pausedAwaitingTurn, .awaitingTurn, .read), Row(.closed, .closed, .ignore),
            ] as [Row<Gate.ResumeAction>]
        ) { $0.resume(keepsBytes: false) }
    }

    @Test func keptBytesAreOfferedInTheTurnAfterResuming() {
        self.check(
            [
                Row(.open, .open, .ignore), Row(.offering, .offering, .ignore),
                Row(.offeringPaused, .offeringResumed, .read), Row(.offeringResumed, .offeringResumed, .ignore),
                Row(.awaitingTurn, .awaitingTurn, .ignore), Row(.paused, .awaitingTurn, .readAndRequestTurn),
                // The turn was requested before.
                Row(.pausedAwaitingTurn, .awaitingTurn, .read), Row(.closed, .closed, .ignore),
            ] as [Row<Gate.ResumeAction>]
        ) { $0.resume(keepsBytes: true) }
    }

    @Test func closedGateStaysClosed() {
        self.check(Gate.allCases.map { Row($0, .closed, true) }) { gate in
            gate.close()
            return !gate.isReading && !gate.admitsInput && !gate.isOffering
        }
    }

    @Test func newInputIsOfferedOnlyWhileOpen() {
        self.check([
            Row(.open, .offering, true), Row(.offering, .offering, false), Row(.offeringPaused, .offeringPaused, false),
            Row(.offeringResumed, .offeringResumed, false), Row(.awaitingTurn, .awaitingTurn, false),
            Row(.paused, .paused, false), Row(.pausedAwaitingTurn, .pausedAwaitingTurn, false),
            Row(.closed, .closed, false),
        ]) { gate in
            defer { gate.offerBegan() }
            return gate.admitsInput
        }
    }

    @Test func keptBytesAreOfferedInTheRequestedTurn() {
        self.check(
            [
                Row(.open, .open, .ignore), Row(.offering, .offering, .ignore),
                Row(.offeringPaused, .offeringPaused, .ignore), Row(.offeringResumed, .offeringResumed, .ignore),
                Row(.awaitingTurn, .offering, .offerKept), Row(.paused, .paused, .ignore),
                Row(.pausedAwaitingTurn, .paused, .ignore), Row(.closed, .closed, .ignore),
            ] as [Row<Gate.TurnAction>]
        ) { $0.turnBegan() }
    }

    /// States in which no offer is under way, in which the end of one changes nothing.
    private static let unchanged: [Row<Gate.OfferAction>] = [
        Row(.awaitingTurn, .awaitingTurn, .keep), Row(.paused, .paused, .keep),
        Row(.pausedAwaitingTurn, .pausedAwaitingTurn, .keep), Row(.closed, .closed, .drop),
    ]

    @Test(arguments: [false, true])
    func gateOpensWhenTheConsumerUsedEverything(budgetIsSpent: Bool) {
        self.check(
            [
                Row(.open, .open, .keep), Row(.offering, .open, .keep), Row(.offeringPaused, .paused, .keep),
                Row(.offeringResumed, .open, .keep),
            ] + Self.unchanged
        ) { $0.offerEnded(leavesBytes: false, budgetIsSpent: budgetIsSpent) }
    }

    @Test func gateKeepsTheRestUntilMoreInputComes() {
        self.check(
            [
                Row(.open, .open, .keep), Row(.offering, .open, .keep), Row(.offeringPaused, .paused, .keep),
                // A new consumer has not seen them.
                Row(.offeringResumed, .awaitingTurn, .keepAndRequestTurn),
            ] + Self.unchanged
        ) { $0.offerEnded(leavesBytes: true, budgetIsSpent: false) }
    }

    @Test func gateOffersTheRestAgainForLackOfBudget() {
        self.check(
            [
                Row(.open, .open, .keep), Row(.offering, .awaitingTurn, .keepAndRequestTurn),
                Row(.offeringPaused, .paused, .keep), Row(.offeringResumed, .awaitingTurn, .keepAndRequestTurn),
            ] + Self.unchanged
        ) { $0.offerEnded(leavesBytes: true, budgetIsSpent: true) }
    }
}
