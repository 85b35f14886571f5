import SessionTasks
import StreamTransport
import Testing

/// Every event in every state, with its action.
@Suite("The states of a stream task")
struct StreamMachineTests {
    private enum State: CaseIterable {
        case open, inputFinished, inputConsumed, inputRefused
        case outputFinished, bothFinished, bothOver
        case outlivingTransport, outlivingConsumed
        case ended

        var machine: StreamMachine {
            var machine = StreamMachine()
            switch self {
            case .open: break
            case .inputFinished: machine.inputClosed()
            case .inputConsumed:
                machine.inputClosed()
                machine.inputConsumed()
            case .inputRefused: machine.inputConsumed()
            case .outputFinished: machine.outputClosed()
            case .bothFinished, .outlivingTransport, .outlivingConsumed:
                machine.inputClosed()
                machine.outputClosed()
            case .bothOver:
                machine.inputConsumed()
                machine.outputClosed()
            case .ended: _ = machine.end()
            }
            switch self {
            case .outlivingTransport: _ = machine.transportEnded(.closed, isRelayed: false)
            case .outlivingConsumed:
                _ = machine.transportEnded(.closed, isRelayed: false)
                machine.inputConsumed()
            case .open, .inputFinished, .inputConsumed, .inputRefused, .outputFinished, .bothFinished, .bothOver,
                .ended:
                break
            }
            return machine
        }
    }

    private func expect(
        _ states: [State], sourceLocation: SourceLocation = #_sourceLocation, _ event: (inout StreamMachine) -> Bool
    ) {
        for state in State.allCases {
            var machine = state.machine
            let action = event(&machine)
            #expect(action == states.contains(state), "in state \(state): \(action)", sourceLocation: sourceLocation)
            // The end is final.
            #expect(state != .ended || machine.hasEnded, sourceLocation: sourceLocation)
        }
    }

    private static let peerFinished: [State] = [
        .inputFinished, .inputConsumed, .bothFinished, .outlivingTransport, .outlivingConsumed,
    ]
    private static let readingOver: [State] = [.inputConsumed, .inputRefused, .bothOver, .outlivingConsumed]

    @Test func peersEndAndEndOfReadingAreVisible() {
        self.expect(Self.peerFinished) { $0.peerFinished }
        self.expect(Self.readingOver) { $0.readingIsOver }
        self.expect(State.allCases) { machine in
            machine.inputClosed()
            return machine.peerFinished
        }
        // After the end, earlier bytes can still be read.
        self.expect(Self.readingOver) { machine in
            machine.inputClosed()
            return machine.readingIsOver
        }
    }

    @Test func readingEndsOnce() {
        self.expect(State.allCases) { machine in
            machine.inputConsumed()
            let input = machine.input
            machine.inputConsumed()
            return machine.readingIsOver && machine.input == input
        }
        self.expect(Self.peerFinished) { machine in
            machine.inputConsumed()
            return machine.peerFinished
        }
    }

    @Test func writingEndsApartFromReading() {
        self.expect([.outputFinished, .bothFinished, .bothOver, .outlivingTransport, .outlivingConsumed]) {
            $0.writingIsOver
        }
        self.expect(State.allCases) { machine in
            let input = machine.input
            machine.outputClosed()
            return machine.writingIsOver && machine.input == input
        }
    }

    @Test(arguments: [TransportEnd.closed, .failed(.reset)])
    func bytesReceivedBeforeBothSidesFinishedAreKept(_ end: TransportEnd) {
        self.expect([.bothFinished]) { $0.transportEnded(end, isRelayed: false) == .readOn }
        self.expect([.bothFinished, .outlivingTransport, .outlivingConsumed]) { machine in
            _ = machine.transportEnded(end, isRelayed: false)
            return machine.outlivesTransport
        }
        self.expect([]) { $0.transportEnded(end, isRelayed: true) == .readOn }
        self.expect([]) { $0.transportEnded(.abandoned, isRelayed: false) == .readOn }
    }

    @Test func machineEndsOnce() {
        self.expect(State.allCases.filter { $0 != .ended }) { machine in
            let isNew = machine.end()
            let isNewAgain = machine.end()
            #expect(!isNewAgain && machine.hasEnded && !machine.outlivesTransport)
            return isNew
        }
    }
}
