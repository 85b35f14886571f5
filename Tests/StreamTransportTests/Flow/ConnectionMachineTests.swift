import StreamTransport
import Testing

/// Every event in every state, with its action.
@Suite("The states of a socket connection")
struct ConnectionMachineTests {
    private enum State: CaseIterable {
        case open, paused, inputRefused, inputFinished
        case outputFinishing, outputFinished, outputBroken
        case closing, closingSent, closingInputFinished, closingBroken
        case ended, reported, detached

        var machine: ConnectionMachine {
            var machine = ConnectionMachine(paused: self == .paused)
            switch self {
            case .open, .paused: break
            case .inputRefused: _ = machine.shutdownInput()
            case .inputFinished: _ = machine.inputFinished(outputIsSent: true)
            case .outputFinishing: _ = machine.shutdownOutput()
            case .outputFinished: _ = machine.shutdownOutput() && machine.finishOutput(outputIsSent: true)
            case .outputBroken: _ = machine.sendFailed(.reset)
            case .closing: _ = machine.close(linger: .seconds(1))
            case .closingSent: _ = machine.close(linger: .seconds(1)) && machine.finishOutput(outputIsSent: true)
            case .closingInputFinished:
                _ = machine.close(linger: .seconds(1))
                _ = machine.inputFinished(outputIsSent: false)
            case .closingBroken:
                _ = machine.close(linger: .seconds(1))
                _ = machine.sendFailed(.reset)
            case .ended: _ = machine.end(.abandoned)
            case .reported:
                _ = machine.end(.abandoned)
                _ = machine.takeEnd()
            case .detached: _ = machine.detach(outputIsSent: true)
            }
            return machine
        }
    }

    /// States not in `actions` give `otherwise`.
    private func expect<Action: Equatable>(
        _ actions: [State: Action], otherwise: Action, sourceLocation: SourceLocation = #_sourceLocation,
        _ event: (inout ConnectionMachine) -> Action
    ) {
        for state in State.allCases {
            var machine = state.machine
            let action = event(&machine)
            #expect(
                action == actions[state] ?? otherwise, "in state \(state): \(action)", sourceLocation: sourceLocation)
            // Whatever happens, a connection without a descriptor takes and gives nothing.
            #expect(machine.isLive || (!machine.isReading && !machine.acceptsOutput), sourceLocation: sourceLocation)
        }
    }

    private static let reset = TransportEnd.failed(.reset)

    @Test func connectionReadsWhileBytesAreTakenOrDiscarded() {
        self.expect(
            [.paused: false, .inputRefused: false, .inputFinished: false, .closingInputFinished: false]
                .merging([.ended: false, .reported: false, .detached: false]) { $1 }, otherwise: true
        ) { $0.isReading }
    }

    @Test func outputIsAcceptedUntilItEnds() {
        self.expect([.open: true, .paused: true, .inputRefused: true, .inputFinished: true], otherwise: false) {
            $0.acceptsOutput
        }
    }

    @Test(arguments: [true, false])
    func endOfInputIsReported(outputIsSent: Bool) {
        self.expect(
            [
                .outputBroken: .end(Self.reset), .closingBroken: .end(Self.reset), .closing: .ignore,
                .closingSent: outputIsSent ? .end(.closed) : .ignore, .closingInputFinished: .ignore, .ended: .ignore,
                .reported: .ignore, .detached: .ignore,
            ], otherwise: .reportInputClosed
        ) { $0.inputFinished(outputIsSent: outputIsSent) }
    }

    @Test func closedDirectionsWaitForTheirReader() {
        self.expect(
            [
                .outputBroken: .end(Self.reset), .closingBroken: .end(Self.reset), .closing: .ignore,
                .closingSent: .ignore, .closingInputFinished: .ignore, .ended: .ignore, .reported: .ignore,
                .detached: .ignore,
            ], otherwise: .unwatch
        ) { $0.hungUp(outputIsSent: true, error: nil) }
    }

    @Test func bytesBeforeAFINAndAResetAreKept() {
        self.expect(
            [
                .open: .unwatch, .paused: .unwatch, .outputFinishing: .unwatch, .outputFinished: .unwatch,
                .ended: .ignore, .reported: .ignore, .detached: .ignore,
            ], otherwise: .end(Self.reset)
        ) { $0.hungUp(outputIsSent: true, error: .brokenPipe) }
    }

    @Test func unreadConnectionEndsWhenItFails() {
        self.expect(
            [
                .outputBroken: .end(Self.reset), .closingBroken: .end(Self.reset), .ended: .ignore,
                .reported: .ignore, .detached: .ignore,
            ], otherwise: .end(.failed(.peerUnresponsive))
        ) { $0.hungUp(outputIsSent: true, error: .timedOut) }
    }

    @Test(arguments: [SystemError.wouldBlock, .interrupted, .noBuffers])
    func sendIsRetriedWhenTheSocketIsFull(_ error: SystemError) {
        self.expect([:], otherwise: .retry) { $0.sendFailed(error) }
    }

    @Test(arguments: [SystemError.reset, .brokenPipe])
    func readingContinuesWhenAWriteMeetsAReset(_ error: SystemError) {
        let notRead: [State] = [.paused, .inputRefused, .inputFinished, .closingInputFinished]
        let over: [State] = [.ended, .reported, .detached]
        let ends = Dictionary(
            uniqueKeysWithValues: (notRead + over).map { ($0, ConnectionMachine.SendFailureAction.end(Self.reset)) })
        self.expect(ends, otherwise: .readOn) { machine in
            let wasLive = machine.isLive
            defer { #expect(machine.output == .broken || !wasLive) }
            return machine.sendFailed(error)
        }
    }

    @Test func unreadInputWaitsForItsReaderWhenAWriteMeetsAResetBehindAFIN() {
        let ends: [State: ConnectionMachine.SendFailureAction] = [
            .inputRefused: .end(Self.reset), .inputFinished: .end(Self.reset), .closingInputFinished: .end(Self.reset),
            .ended: .end(Self.reset), .reported: .end(Self.reset), .detached: .end(Self.reset),
        ]
        self.expect(ends, otherwise: .readOn) { $0.sendFailed(.brokenPipe, keepsInput: true) }
        self.expect(ends.merging([.paused: .end(Self.reset)]) { $1 }, otherwise: .readOn) {
            $0.sendFailed(.reset, keepsInput: true)
        }
        self.expect(
            [.outputBroken: .unwatch, .closingBroken: .end(Self.reset)]
                .merging([.closing: .ignore, .closingSent: .ignore, .closingInputFinished: .ignore]) { $1 }
                .merging([.ended: .ignore, .reported: .ignore, .detached: .ignore]) { $1 }, otherwise: .unwatch
        ) { $0.hungUp(outputIsSent: true, error: nil, keepsInput: true) }
    }

    @Test func brokenOutputIsReportedOnce() {
        self.expect([.outputBroken: true], otherwise: false) { machine in
            let isNew = machine.takeBrokenOutput()
            let isNewAgain = machine.takeBrokenOutput()
            #expect(!isNewAgain)
            return isNew
        }
    }

    @Test func otherFailedWriteEndsTheConnection() {
        self.expect([:], otherwise: .end(.failed(.peerUnresponsive))) { $0.sendFailed(.timedOut) }
        self.expect([:], otherwise: .end(.failed(.system(.accessDenied)))) { $0.sendFailed(.accessDenied) }
    }

    @Test func inputIsRefusedOnce() {
        let open: [State] = [.open, .paused, .outputFinishing, .outputFinished, .outputBroken]
        self.expect(Dictionary(uniqueKeysWithValues: open.map { ($0, true) }), otherwise: false) { machine in
            let isNew = machine.shutdownInput()
            let isNewAgain = machine.shutdownInput()
            #expect(!isNewAgain)
            return isNew
        }
    }

    @Test func outputEndsOnceAfterTheQueue() {
        let open: [State] = [.open, .paused, .inputRefused, .inputFinished]
        let newlyFinishing = Dictionary(uniqueKeysWithValues: open.map { ($0, true) })
        self.expect(newlyFinishing, otherwise: false) { $0.shutdownOutput() }
        self.expect(
            newlyFinishing.merging([.outputFinishing: true, .closing: true, .closingInputFinished: true]) { $1 },
            otherwise: false
        ) { machine in
            _ = machine.shutdownOutput()
            let answers = [false, true, true].map { machine.finishOutput(outputIsSent: $0) }
            #expect(!answers[0] && !answers[2])
            return answers[1]
        }
    }

    @Test func connectionClosesOnce() {
        let over: [State] = [
            .closing, .closingSent, .closingInputFinished, .closingBroken, .ended, .reported, .detached,
        ]
        self.expect(Dictionary(uniqueKeysWithValues: over.map { ($0, false) }), otherwise: true) { machine in
            let isNew = machine.close(linger: .seconds(1))
            let isNewAgain = machine.close(linger: .zero)
            #expect(!isNewAgain && !machine.isOpen && machine.gate == .closed)
            return isNew
        }
    }

    @Test func connectionIsClosedWhenBothDirectionsAreOver() {
        let broken: [State: TransportEnd?] = [.closingBroken: .closed]
        self.expect(broken, otherwise: nil) { $0.closingEnd(outputIsSent: true) }
        self.expect([:], otherwise: nil) { $0.closingEnd(outputIsSent: false) }
        let through: [State: TransportEnd?] = [.closingInputFinished: .closed, .closingBroken: .closed]
        self.expect(through, otherwise: nil) { machine in
            _ = machine.finishOutput(outputIsSent: true)
            return machine.closingEnd(outputIsSent: true)
        }
    }

    @Test(arguments: [true, false])
    func lingerTimeEndsTheConnection(outputIsSent: Bool) {
        let end: TransportEnd? = outputIsSent ? .closed : .abandoned
        let closing: [State] = [.closing, .closingSent, .closingInputFinished, .closingBroken]
        self.expect(Dictionary(uniqueKeysWithValues: closing.map { ($0, end) }), otherwise: nil) {
            $0.lingerPassed(outputIsSent: outputIsSent)
        }
    }

    @Test func firstEndIsReportedOnce() {
        self.expect([.ended: false, .reported: false, .detached: false], otherwise: true) { $0.end(.closed) }
        let first: [State: TransportEnd?] = [.ended: .abandoned, .reported: nil, .detached: nil]
        self.expect(first, otherwise: .closed) { machine in
            _ = machine.end(.closed)
            let end = machine.takeEnd()
            let endAgain = machine.takeEnd()
            #expect(endAgain == nil)
            return end
        }
        let ended: [State: TransportEnd?] = [.ended: .abandoned]
        self.expect(ended, otherwise: nil) { $0.takeEnd() }
    }

    @Test func connectionIsHandedOverOnlyWithNothingQueuedOrOffered() {
        let open: [State] = [.open, .paused, .inputRefused, .inputFinished]
        self.expect(Dictionary(uniqueKeysWithValues: open.map { ($0, true) }), otherwise: false) {
            $0.detach(outputIsSent: true)
        }
        self.expect([:], otherwise: false) { $0.detach(outputIsSent: false) }
    }

    @Test func longReadIsExpectedAfterALongRead() {
        let finished: [State] = [.inputFinished, .closingInputFinished]
        self.expect(Dictionary(uniqueKeysWithValues: finished.map { ($0, false) }), otherwise: true) { machine in
            machine.bytesReceived(isBulk: true)
            return machine.expectsBulk
        }
        self.expect([:], otherwise: false) { machine in
            machine.bytesReceived(isBulk: true)
            machine.bytesReceived(isBulk: false)
            return machine.expectsBulk
        }
    }

    @Test func connectionThatFailedToOpenReportsNothing() {
        var machine = ConnectionMachine(paused: false)
        machine.openFailed()
        let end = machine.takeEnd()
        #expect(!machine.isLive && end == nil && machine.gate == .closed)
    }

    @Test(arguments: [
        (SystemError.reset, TransportEnd.failed(.reset)), (.brokenPipe, .failed(.reset)),
        (.timedOut, .failed(.peerUnresponsive)), (.hostUnreachable, .failed(.unreachable(.hostUnreachable))),
        (.accessDenied, .failed(.system(.accessDenied))),
    ])
    func failedReadEndsTheConnection(_ error: SystemError, _ end: TransportEnd) {
        #expect(ConnectionMachine.end(readFailure: error) == end)
    }

    @Test(arguments: [SystemError.wouldBlock, .interrupted])
    func readThatFoundNothingIsRepeated(_ error: SystemError) {
        #expect(ConnectionMachine.end(readFailure: error) == nil)
    }
}
