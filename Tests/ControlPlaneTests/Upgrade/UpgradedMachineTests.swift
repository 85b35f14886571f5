import ControlPlane
import StreamTransport
import Testing

/// Every event in every state, with its action.
@Suite("The states of an upgraded connection")
struct UpgradedMachineTests {
    private enum State: CaseIterable {
        case paused, awaitingTurn, idle, reading, inputFinished, inputReported
        case outputFinished, disconnected, closing, ending, endingBehindInput, ended

        static let open: [State] = [.paused, .awaitingTurn, .idle, .reading, .inputFinished, .inputReported]

        var machine: UpgradedMachine {
            var machine = UpgradedMachine()
            if self == .paused { return machine }
            if self == .awaitingTurn || self == .endingBehindInput {
                _ = machine.resume(keepsBytes: true)
            } else {
                _ = machine.resume(keepsBytes: false)
            }
            switch self {
            case .paused, .awaitingTurn, .idle: break
            case .reading: _ = machine.requestRead()
            case .inputFinished: machine.peerFinished()
            case .inputReported:
                machine.peerFinished()
                _ = machine.reportInputEnd()
            case .outputFinished: _ = machine.shutdownOutput()
            case .disconnected:
                _ = machine.shutdownOutput()
                _ = machine.channelEnded(.closed)
            case .closing: _ = machine.close(.closed)
            case .ending, .endingBehindInput: _ = machine.channelEnded(.failed(.reset))
            case .ended:
                _ = machine.channelEnded(.failed(.reset))
                _ = machine.takeEnd()
            }
            return machine
        }
    }

    /// States not in `actions` give `otherwise`.
    private func expect<Action: Equatable>(
        _ actions: [([State], Action)], otherwise: Action, sourceLocation: SourceLocation = #_sourceLocation,
        _ event: (inout UpgradedMachine) -> Action
    ) {
        for state in State.allCases {
            var machine = state.machine
            let expected = actions.first { $0.0.contains(state) }?.1 ?? otherwise
            let action = event(&machine)
            #expect(action == expected, "in state \(state): \(action)", sourceLocation: sourceLocation)
            // The end is final, and after it nothing is read or written.
            #expect(state != .ended || machine.hasEnded, sourceLocation: sourceLocation)
            #expect(
                !machine.hasEnded || (!machine.acceptsOutput && machine.gate == .closed), sourceLocation: sourceLocation
            )
        }
    }

    private func expect(
        _ states: [State], sourceLocation: SourceLocation = #_sourceLocation, _ event: (inout UpgradedMachine) -> Bool
    ) {
        self.expect([(states, true)], otherwise: false, sourceLocation: sourceLocation, event)
    }

    @Test func requestOneReadAtATime() {
        self.expect([.idle, .outputFinished, .ending]) { machine in
            let reads = machine.requestRead()
            let readsAgain = machine.requestRead()
            #expect(!readsAgain)
            return reads
        }
        self.expect([.idle, .reading, .outputFinished, .ending]) { machine in
            machine.bytesArrived()
            return machine.requestRead()
        }
    }

    @Test func resumedMachineOffersBufferedInputInTheNextTurn() {
        self.expect([([.paused], .read)], otherwise: .ignore) { $0.resume(keepsBytes: false) }
        self.expect([([.paused], .readAndRequestTurn)], otherwise: .ignore) { $0.resume(keepsBytes: true) }
        // The end of input is reported in a separate turn too.
        self.expect([([.paused], .readAndRequestTurn)], otherwise: .ignore) { machine -> InputGate.ResumeAction in
            machine.peerFinished()
            return machine.resume(keepsBytes: false)
        }
        self.expect([([.awaitingTurn, .ending, .endingBehindInput], .offerKept)], otherwise: .ignore) {
            machine -> InputGate.TurnAction in
            // A consumer that pauses before the end gets a last offer.
            if case .ending = machine.state { machine.gate.pause() }
            return machine.turnBegan()
        }
    }

    @Test func reportTheEndOfInputOnce() {
        let notReported = State.allCases.filter { ![.inputReported, .closing, .ended].contains($0) }
        self.expect(notReported) { machine in
            machine.peerFinished()
            let isNew = machine.reportInputEnd()
            let isNewAgain = machine.reportInputEnd()
            #expect(!isNewAgain)
            return isNew
        }
        self.expect([.inputFinished, .disconnected]) { $0.reportInputEnd() }
    }

    @Test func outputIsFinishedOnce() {
        self.expect(State.open) { $0.acceptsOutput }
        self.expect(State.open) { machine in
            let isNew = machine.shutdownOutput()
            let isNewAgain = machine.shutdownOutput()
            #expect(!isNewAgain)
            return isNew
        }
    }

    @Test func closeClosesAConnectedChannelOnly() {
        let connected = State.open + [.outputFinished, .closing]
        self.expect([(connected, .closeChannel), ([.disconnected], .requestTurn)], otherwise: .ignore) {
            machine -> UpgradedMachine.CloseAction in
            let action = machine.close(.abandoned)
            #expect(machine.gate == .closed)
            return action
        }
        let ends: [([State], TransportEnd?)] = [
            ([.disconnected], .abandoned), ([.ending, .endingBehindInput], .failed(.reset)),
        ]
        self.expect(ends, otherwise: nil) { machine -> TransportEnd? in
            _ = machine.close(.abandoned)
            return machine.takeEnd()
        }
    }

    @Test func bufferedInputIsOfferedBeforeTheEnd() {
        self.expect(
            [(State.open + [.closing], .offerInputAndEnd), ([.outputFinished], .offerInput)], otherwise: .ignore
        ) { $0.channelEnded(.closed) }
        self.expect([(State.open + [.outputFinished, .closing], .offerInputAndEnd)], otherwise: .ignore) {
            $0.channelEnded(.failed(.truncated))
        }
    }

    @Test func endIsReportedOnceAfterTheInput() {
        let ends: [([State], TransportEnd?)] = [
            ([.awaitingTurn, .endingBehindInput, .disconnected, .ended], nil), ([.ending], .failed(.reset)),
        ]
        self.expect(ends, otherwise: .failed(.truncated)) { machine -> TransportEnd? in
            _ = machine.channelEnded(.failed(.truncated))
            let end = machine.takeEnd()
            let endAgain = machine.takeEnd()
            #expect(endAgain == nil)
            return end
        }
        let afterTheTurn: [([State], TransportEnd?)] = [([.ending, .endingBehindInput], .failed(.reset))]
        self.expect(afterTheTurn, otherwise: nil) { machine -> TransportEnd? in
            _ = machine.turnBegan()
            _ = machine.gate.offerEnded(leavesBytes: true, budgetIsSpent: false)
            return machine.takeEnd()
        }
    }
}
