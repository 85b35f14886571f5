import SessionTasks
import StreamTransport
import Testing

/// Every event in every state, with its action.
@Suite("The states of TLS over a transport")
struct SecureMachineTests {
    private enum State: CaseIterable {
        case handshaking, awaitingDecision
        case paused, awaitingTurn, offering, reading
        case inputFinished, outputFinished
        case closing, failed, reported, ended

        /// The states in which plaintext is exchanged.
        static let established: [State] = [
            .paused, .awaitingTurn, .offering, .reading, .inputFinished, .outputFinished,
        ]
        static let shakingHands: [State] = [.handshaking, .awaitingDecision]
        static let over: [State] = [.closing, .failed, .reported, .ended]

        var machine: SecureMachine {
            var machine = SecureMachine()
            switch self {
            case .handshaking: return machine
            case .awaitingDecision:
                _ = machine.decisionRequested()
                return machine
            case .paused, .awaitingTurn, .offering, .reading, .inputFinished, .outputFinished, .closing, .failed,
                .reported, .ended:
                _ = machine.handshakeCompleted()
            }
            if self != .paused { _ = machine.resume() }
            if self != .awaitingTurn { _ = machine.turnBegan() }
            if self != .offering { _ = machine.offerEnded(leavesBytes: false, budgetIsSpent: false) }
            switch self {
            case .handshaking, .awaitingDecision, .paused, .awaitingTurn, .offering, .reading: break
            case .inputFinished: _ = machine.closeNotifyReceived()
            case .outputFinished: _ = machine.shutdownOutput()
            case .closing: _ = machine.close()
            case .failed: _ = machine.fail(.reset)
            case .reported:
                _ = machine.fail(.reset)
                _ = machine.takeFailure()
            case .ended: _ = machine.lowerEnded()
            }
            return machine
        }
    }

    /// States not in `actions` give `otherwise`.
    private func expect<Action: Equatable>(
        _ actions: [State: Action], otherwise: Action, sourceLocation: SourceLocation = #_sourceLocation,
        _ event: (inout SecureMachine) -> Action
    ) {
        for state in State.allCases {
            var machine = state.machine
            let action = event(&machine)
            #expect(
                action == actions[state] ?? otherwise, "in state \(state): \(action)", sourceLocation: sourceLocation)
            // Whatever happens, a connection that is over takes and gives nothing.
            let isOver = !machine.isEstablished && !machine.isShakingHands
            #expect(!isOver || (!machine.decrypts && !machine.acceptsOutput), sourceLocation: sourceLocation)
            #expect(!isOver || machine.gate == .closed, sourceLocation: sourceLocation)
        }
    }

    private func states(_ states: [State]) -> [State: Bool] {
        Dictionary(uniqueKeysWithValues: states.map { ($0, true) })
    }

    @Test func machineAcceptsOutputUntilItIsFinished() {
        self.expect(
            self.states(State.shakingHands + [.paused, .awaitingTurn, .offering, .reading, .inputFinished]),
            otherwise: false
        ) { $0.acceptsOutput }
    }

    @Test func inputIsDecryptedDuringTheHandshakeAndWhileTheConsumerReads() {
        self.expect(self.states(State.shakingHands + [.offering]), otherwise: false) { $0.decrypts }
        let mayOffer: [State] = [.offering, .reading, .inputFinished, .outputFinished]
        self.expect(self.states(State.shakingHands + mayOffer), otherwise: false) { machine in
            machine.offerBegan()
            return machine.decrypts
        }
    }

    @Test func machineIsEstablishedOnce() {
        let actions = State.shakingHands.map { ($0, SecureMachine.CompletionAction.handOver) }
        self.expect(Dictionary(uniqueKeysWithValues: actions), otherwise: .ignore) { machine in
            let action = machine.handshakeCompleted()
            // The new owner resumes.
            let again = machine.handshakeCompleted()
            #expect(again == .ignore && (action == .ignore || machine.gate == .paused))
            return action
        }
    }

    @Test func earlyDataIsSentOnceWithinTheHandshake() {
        self.expect(self.states(State.shakingHands), otherwise: false) { machine in
            machine.earlyDataBegan()
            let isPreparing = machine.preparesEarlyData
            let isSent = machine.earlyDataSent()
            let isSentAgain = machine.earlyDataSent()
            #expect(isSent == isPreparing && !isSentAgain && !machine.preparesEarlyData)
            return isPreparing
        }
    }

    @Test func ownerBeforeTheHandshakeReadsBehindIt() {
        for reads in [false, true] {
            let actions = State.shakingHands.map { ($0, SecureMachine.CompletionAction.proceed(isReading: reads)) }
            self.expect(Dictionary(uniqueKeysWithValues: actions), otherwise: .ignore) { machine in
                machine.earlyDataBegan()
                if machine.isShakingHands {
                    let resumes = machine.resume()
                    _ = machine.earlyDataSent()
                    let pauses = reads ? false : machine.pause()
                    #expect(resumes == .ignore && !pauses)
                }
                return machine.handshakeCompleted()
            }
        }
    }

    @Test func handshakeStopsForADecision() {
        self.expect(self.states([.handshaking]), otherwise: false) { $0.decisionRequested() }
        self.expect([.handshaking: .proceed, .awaitingDecision: .resumeAndProceed], otherwise: .ignore) {
            $0.decisionMade()
        }
    }

    @Test func pausePausesTheConnectionBelow() {
        self.expect(self.states(State.established), otherwise: false) { machine in
            let pauses = machine.pause()
            #expect(!pauses || !machine.gate.isReading)
            return pauses
        }
    }

    @Test func bufferedPlaintextIsOfferedBeforeReadingContinues() {
        self.expect([.paused: .requestTurn], otherwise: .ignore) { $0.resume() }
        // The turn that was requested before reads on.
        let mayRequest: [State] = [.paused, .reading, .inputFinished, .outputFinished]
        let actions = mayRequest.map { ($0, SecureMachine.ResumeAction.requestTurn) }
        self.expect(Dictionary(uniqueKeysWithValues: actions + [(.offering, .read)]), otherwise: .ignore) { machine in
            _ = machine.pause()
            return machine.resume()
        }
        self.expect([.awaitingTurn: .offerKept], otherwise: .ignore) { $0.turnBegan() }
    }

    @Test func unconsumedPlaintextIsKept() {
        let over: [State: InputGate.OfferAction] = Dictionary(uniqueKeysWithValues: State.over.map { ($0, .drop) })
        self.expect(over, otherwise: .keep) { $0.offerEnded(leavesBytes: true, budgetIsSpent: false) }
        self.expect(over.merging([.offering: .keepAndRequestTurn]) { $1 }, otherwise: .keep) {
            $0.offerEnded(leavesBytes: true, budgetIsSpent: true)
        }
    }

    @Test func closeNotifyIsReportedOnce() {
        let open: [State] = [.paused, .awaitingTurn, .offering, .reading, .outputFinished]
        self.expect(self.states(open), otherwise: false) { machine in
            let isNew = machine.closeNotifyReceived()
            let isNewAgain = machine.closeNotifyReceived()
            #expect(!isNewAgain)
            return isNew
        }
    }

    @Test func endWithoutCloseNotifyIsATruncation() {
        self.expect(
            [.inputFinished: .ignore, .handshaking: .failHandshake, .awaitingDecision: .failHandshake],
            otherwise: .failTruncated
        ) { $0.lowerInputClosed() }
        self.expect([:], otherwise: SecureMachine.InputEndAction.ignore) { machine in
            _ = machine.closeNotifyReceived()
            return machine.lowerInputClosed()
        }
    }

    @Test func closeNotifyIsSentOnce() {
        let open: [State] = [.paused, .awaitingTurn, .offering, .reading, .inputFinished]
        self.expect(self.states(open), otherwise: false) { machine in
            let isNew = machine.shutdownOutput()
            let isNewAgain = machine.shutdownOutput()
            #expect(!isNewAgain && !machine.acceptsOutput)
            return isNew
        }
    }

    @Test func closeTakesEffectOnce() {
        self.expect(self.states(State.shakingHands + State.established), otherwise: false) { machine in
            let isNew = machine.close()
            let isNewAgain = machine.close()
            #expect(!isNewAgain && machine.gate == .closed)
            return isNew
        }
    }

    @Test func firstFailureIsReportedOnce() {
        let running = State.shakingHands + State.established + [.closing]
        self.expect(self.states(running), otherwise: false) { $0.fail(.truncated) }
        let first: [State: TransportFailure?] = [.failed: .reset, .reported: nil, .ended: nil]
        self.expect(first, otherwise: .truncated) { machine in
            _ = machine.fail(.truncated)
            let failure = machine.takeFailure()
            let failureAgain = machine.takeFailure()
            #expect(failureAgain == nil)
            return failure
        }
        let failed: [State: TransportFailure?] = [.failed: .reset]
        self.expect(failed, otherwise: nil) { $0.takeFailure() }
    }

    @Test func machineEndsWithTheConnectionBelow() {
        let running = State.shakingHands + State.established + [.closing]
        self.expect(self.states(running), otherwise: false) { machine in
            let isNew = machine.lowerEnded()
            let isNewAgain = machine.lowerEnded()
            #expect(!isNewAgain)
            return isNew
        }
    }
}
