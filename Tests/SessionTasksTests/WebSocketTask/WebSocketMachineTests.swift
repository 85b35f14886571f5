import SessionTasks
import Testing

/// Every event in every state, with its action.
@Suite("The states of a WebSocket task")
struct WebSocketMachineTests {
    private typealias Machine = WebSocketMachine

    private enum State: CaseIterable {
        case opening, openingSuspended
        case open, consumerBehind, outputBehind, endDeferred, suspended, insideMessage, insideFrame
        case closing, closingInsideFrame, closingBehind
        case closeReceived, draining, drainingInsideFrame
        case ended

        /// Between the opening handshake and the first Close frame.
        static let allOpen: [State] = [
            .open, .consumerBehind, .outputBehind, .endDeferred, .suspended, .insideMessage, .insideFrame,
        ]
        static let allClosing: [State] = [.closing, .closingInsideFrame, .closingBehind]
        static let allOpening: [State] = [.opening, .openingSuspended]
        /// The peer's Close frame came.
        static let allClosed: [State] = [.closeReceived, .draining, .drainingInsideFrame]

        var machine: WebSocketMachine {
            var machine = WebSocketMachine(startsPaused: false)
            if self == .openingSuspended { _ = machine.suspend() }
            if State.allOpening.contains(self) { return machine }
            machine.openingCompleted()
            switch self {
            case .opening, .openingSuspended, .open: break
            case .consumerBehind: machine.consumerPaused()
            case .outputBehind: _ = machine.outputFellBehind()
            case .endDeferred: _ = machine.deferEnd()
            case .suspended: _ = machine.suspend()
            case .insideMessage: _ = machine.pieceSent(endsMessage: false)
            case .insideFrame, .closingInsideFrame, .drainingInsideFrame:
                machine.framesSent(endsFrame: false, endsMessage: false)
            case .closing, .closeReceived, .draining, .ended: break
            case .closingBehind: machine.consumerPaused()
            }
            switch self {
            case .closing, .closingInsideFrame, .closingBehind: _ = machine.beginClose(isRelayed: true)
            case .closeReceived: _ = machine.closeReceived()
            case .draining, .drainingInsideFrame:
                _ = machine.closeReceived()
                _ = machine.closeAnswered()
            case .ended: _ = machine.end()
            case .opening, .openingSuspended, .open, .consumerBehind, .outputBehind, .endDeferred, .suspended,
                .insideMessage, .insideFrame:
                break
            }
            return machine
        }
    }

    /// States not in `actions` give `otherwise`.
    private func expect<Action: Equatable>(
        _ actions: [([State], Action)], otherwise: Action, sourceLocation: SourceLocation = #_sourceLocation,
        _ event: (inout Machine) -> Action
    ) {
        for state in State.allCases {
            var machine = state.machine
            let expected = actions.first { $0.0.contains(state) }?.1 ?? otherwise
            let action = event(&machine)
            #expect(action == expected, "in state \(state): \(action)", sourceLocation: sourceLocation)
            // The end is final, and after it nothing is read or sent.
            #expect(state != .ended || machine.hasEnded, sourceLocation: sourceLocation)
            #expect(
                !machine.hasEnded || (!machine.acceptsInput && !machine.acceptsData), sourceLocation: sourceLocation)
        }
    }

    private func expect(
        _ states: [State], sourceLocation: SourceLocation = #_sourceLocation, _ event: (inout Machine) -> Bool
    ) {
        self.expect([(states, true)], otherwise: false, sourceLocation: sourceLocation, event)
    }

    private static let reading: [State] = [.open, .insideMessage, .insideFrame, .closing, .closingInsideFrame]
    private static let pausedByReason: [State] = [
        .consumerBehind, .outputBehind, .endDeferred, .suspended, .closingBehind,
    ]

    // MARK: Reading

    @Test func machineReadsUnlessPaused() {
        self.expect(Self.reading) { $0.acceptsInput }
        self.expect([(Self.reading, .resume), (Self.pausedByReason, .pause)], otherwise: .ignore) { $0.reading }
    }

    @Test func inputAfterTheCloseFrameIsDiscarded() {
        self.expect(State.allClosed + [.ended]) { $0.discardsInput }
    }

    @Test func readingResumesWhenTheConsumerHasCaughtUp() {
        self.expect([]) { machine in
            machine.consumerPaused()
            return machine.acceptsInput
        }
        self.expect(Self.reading + [.consumerBehind, .closingBehind]) { machine in
            machine.consumerPaused()
            machine.consumerResumed()
            return machine.acceptsInput
        }
    }

    @Test func readingResumesWhenTheOutputHasCaughtUp() {
        self.expect(State.allCases.filter { $0 != .outputBehind }) { machine in
            let isNew = machine.outputFellBehind()
            let isNewAgain = machine.outputFellBehind()
            #expect(!isNewAgain && !machine.acceptsInput)
            return isNew
        }
        self.expect(Self.reading + [.outputBehind]) { machine in
            machine.outputCaughtUp()
            return machine.acceptsInput
        }
    }

    @Test func openingOrOpenTaskCanBeSuspended() {
        self.expect(
            [([.opening], .leaveOpening), (State.allOpen.filter { $0 != .suspended }, .pauseReading)],
            otherwise: .ignore
        ) { machine -> Machine.SuspendAction in
            let action = machine.suspend()
            let actionAgain = machine.suspend()
            #expect(actionAgain == .ignore && (action == .ignore || machine.isSuspended))
            return action
        }
    }

    @Test func suspendedTaskResumes() {
        self.expect([([.openingSuspended], .run), ([.suspended], .resume)], otherwise: .ignore) { $0.endSuspension() }
        let open = State.allOpen.filter { $0 != .endDeferred }
        self.expect(
            [(State.allOpening, .run), (open, .resume), ([.endDeferred], .waitForReceivers)], otherwise: .ignore
        ) { machine -> Machine.SuspensionEndAction in
            _ = machine.suspend()
            return machine.endSuspension()
        }
    }

    // MARK: Sending

    @Test func dataIsSentUntilTheCloseIsSent() {
        self.expect(State.allOpen + [.closeReceived]) { $0.acceptsData }
        self.expect(State.allOpening + State.allOpen) { $0.acceptsMessages }
    }

    @Test func messagesBeginBetweenMessages() {
        let mayNot: [State] = [
            .openingSuspended, .suspended, .insideMessage, .insideFrame, .closingInsideFrame, .drainingInsideFrame,
        ]
        self.expect(State.allCases.filter { !mayNot.contains($0) }) { $0.startsMessages }
    }

    @Test func waitingMessagesBeginAfterTheEndOfAnother() {
        self.expect([.insideMessage]) { $0.pieceSent(endsMessage: true) }
        let insideFrame: [State] = [.insideFrame, .closingInsideFrame, .drainingInsideFrame]
        self.expect([]) { $0.pieceSent(endsMessage: false) }
        self.expect(State.allCases.filter { !insideFrame.contains($0) }) { machine in
            let mayFollow = machine.pieceSent(endsMessage: false)
            return !mayFollow && machine.output == .insideMessage
        }
    }

    @Test func endsOfForwardedFramesAreKnown() {
        self.expect(State.allCases) { machine in
            machine.framesSent(endsFrame: false, endsMessage: false)
            let insideFrame = machine.isInsideFrame
            machine.framesSent(endsFrame: true, endsMessage: false)
            let insideMessage = machine.output == .insideMessage
            machine.framesSent(endsFrame: true, endsMessage: true)
            return insideFrame && insideMessage && machine.output == .betweenMessages
        }
    }

    // MARK: Opening and closing

    @Test func machineOpensOnce() {
        self.expect(State.allOpening + State.allOpen) { machine in
            machine.openingCompleted()
            return machine.isOpen
        }
    }

    @Test func oneCloseFrameIsSent() {
        self.expect(State.allOpen) { machine in
            let isNew = machine.beginClose(isRelayed: false)
            let isNewAgain = machine.beginClose(isRelayed: false)
            #expect(!isNewAgain)
            return isNew
        }
    }

    @Test func readingContinuesAfterTheOwnCloseForThePeersClose() {
        let readOn: [State] = [.open, .outputBehind, .insideMessage, .insideFrame]
        self.expect(readOn + [.closing, .closingInsideFrame]) { machine in
            _ = machine.beginClose(isRelayed: true)
            return machine.acceptsInput
        }
        // Without a relay messages that have no receiver are discarded instead.
        self.expect(readOn + [.consumerBehind, .closing, .closingInsideFrame]) { machine in
            _ = machine.beginClose(isRelayed: false)
            return machine.acceptsInput
        }
    }

    @Test func receivedCloseIsAnsweredOrEndsTheTransport() {
        self.expect([(State.allOpen, .answer), (State.allClosing, .endTransport)], otherwise: .ignore) {
            machine -> Machine.CloseReceivedAction in
            let action = machine.closeReceived()
            let actionAgain = machine.closeReceived()
            #expect(actionAgain == .ignore)
            return action
        }
        self.expect([.closeReceived]) { machine in
            let answers = machine.closeAnswered()
            let answersAgain = machine.closeAnswered()
            #expect(!answersAgain)
            return answers
        }
    }

    @Test func endIsDeferredForTheReceiverOfAMessage() {
        self.expect(State.allOpen) { machine in
            let isDeferred = machine.deferEnd()
            #expect(!isDeferred || (machine.hasDeferredEnd && !machine.acceptsInput))
            return isDeferred
        }
        self.expect([.endDeferred]) { machine in
            let isDeferred = machine.takeDeferredEnd()
            let isDeferredStill = machine.takeDeferredEnd()
            #expect(!isDeferredStill)
            return isDeferred
        }
    }

    // MARK: Ends

    @Test func failureSendsACloseFrameOnlyBetweenFrames() {
        let insideFrame: [State] = [.insideFrame, .closingInsideFrame, .drainingInsideFrame]
        self.expect([(insideFrame, .reset), (State.allOpen, .sendClose)], otherwise: .endTransport) {
            $0.failureAction
        }
    }

    @Test func endOfInputWithoutACloseFrameFails() {
        self.expect(
            [
                (State.allOpening, .interruptOpening), (State.allOpen + State.allClosing, .failConnection),
                (State.allClosed, .endTransport),
            ], otherwise: .ignore
        ) { $0.inputEndAction }
        self.expect(State.allOpening + State.allOpen + State.allClosing) { $0.isCutOffByEnd }
        self.expect(State.allClosing + [.draining, .drainingInsideFrame]) { $0.awaitsPeerEnd }
    }

    @Test(arguments: [false, true])
    func eachPhaseHasOneTimer(isRelayed: Bool) {
        self.expect(
            [
                (State.allOpening, .timeOutOpening), ([.endDeferred], .processDeferredEnd), (State.allOpen, .keepAlive),
                ([.closingBehind], isRelayed ? .waitOn : .giveUp), (State.allClosing, .giveUp),
                ([.draining], .endTransport), ([.drainingInsideFrame], .reset),
            ], otherwise: .ignore
        ) { $0.timerFired(isRelayed: isRelayed) }
    }

    @Test func machineEndsOnce() {
        self.expect(State.allCases.filter { $0 != .ended }) { machine in
            let isNew = machine.end()
            let isNewAgain = machine.end()
            #expect(!isNewAgain && machine.hasEnded && machine.pauses.isEmpty)
            return isNew
        }
    }
}
