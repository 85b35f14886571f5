import Rooms
import Testing

@Suite("Flow of a client's commands")
struct CommandFlowTests {
    enum State: String, CaseIterable {
        case idle, performing, nextTurn, output, room, results, closed

        /// - Parameter isPaused: whether a room is behind, as it always is in the state `room`.
        func flow(isPaused: Bool) -> CommandFlow {
            var flow = CommandFlow()
            switch self {
            case .idle: break
            case .performing: _ = flow.received(Self.commands)
            case .nextTurn: Self.wait(&flow, CommandFlow.Limits(turnIsSpent: true))
            case .output: Self.wait(&flow, CommandFlow.Limits(outputIsFull: true))
            case .room:
                _ = flow.roomPaused()
                Self.wait(&flow, CommandFlow.Limits())
            case .results: Self.wait(&flow, CommandFlow.Limits(resultsAreMissing: true))
            case .closed: _ = flow.close()
            }
            if isPaused, self != .room { _ = flow.roomPaused() }
            return flow
        }

        private static func wait(_ flow: inout CommandFlow, _ limits: CommandFlow.Limits) {
            _ = flow.received(Self.commands)
            _ = flow.next(within: limits, mustWait: { _ in false })
        }

        static let commands = CommandReader(
            Array(#"{"id":1,"ping":{}}"#.utf8) + [0x0A] + Array(#"{"id":2,"ping":{}}"#.utf8), encoding: .json)
    }

    enum Event: String, CaseIterable {
        case received, next, nextAfterResult, nextOverLimits, nextTurnBegan, resultsArrived, outputRead, outputDrained
        case roomPaused, roomResumed, timerFired, close

        func apply(to flow: inout CommandFlow) -> String {
            switch self {
            case .received: "\(flow.received(State.commands))"
            case .next: Self.text(flow.next(within: CommandFlow.Limits(), mustWait: { _ in false }))
            case .nextAfterResult: Self.text(flow.next(within: CommandFlow.Limits(), mustWait: { _ in true }))
            case .nextOverLimits:
                Self.text(
                    flow.next(
                        within: CommandFlow.Limits(outputIsFull: true, resultsAreMissing: true),
                        mustWait: { _ in false }))
            case .nextTurnBegan: Self.text(flow.nextTurnBegan())
            case .resultsArrived: Self.text(flow.resultsArrived())
            case .outputRead: Self.text(flow.outputProgressed(isDrained: false))
            case .outputDrained: Self.text(flow.outputProgressed(isDrained: true))
            case .roomPaused: "\(flow.roomPaused())"
            case .roomResumed: "\(flow.roomResumed())"
            case .timerFired: flow.timerFired() ? "wasPaused" : "ignore"
            case .close: flow.close() ? "resumeReading" : "ignore"
            }
        }

        private static func text(_ action: CommandFlow.NextAction) -> String {
            switch action {
            case .perform(let command): "command\(command.number)"
            case .reject: "reject"
            case .wait(let wait, let pausesReading): pausesReading ? "\(wait),pauseReading" : "\(wait)"
            case .finish: "finish"
            }
        }

        private static func text(_ action: CommandFlow.ResumeAction) -> String {
            switch action {
            case .perform(let resumesReading): resumesReading ? "perform,resumeReading" : "perform"
            case .ignore: "ignore"
            }
        }

        private static func text(_ action: CommandFlow.OutputAction) -> String {
            switch action {
            case .resume(let action): Self.text(action)
            case .awaitProgress: "awaitProgress"
            }
        }
    }

    /// A line for each event: its name, then the action in each state, in the order of `State.allCases`.
    private static let table = """
        received        perform      overrun              overrun               overrun               - overrun               ignore
        next            finish       command1             finish                finish                - finish                finish
        nextAfterResult finish       results,pauseReading finish                finish                - finish                finish
        nextOverLimits  finish       output,pauseReading  finish                finish                - finish                finish
        nextTurnBegan   ignore       ignore               perform,resumeReading ignore                - ignore                ignore
        resultsArrived  ignore       ignore               ignore                ignore                - perform,resumeReading ignore
        outputRead      ignore       ignore               ignore                awaitProgress         - ignore                ignore
        outputDrained   ignore       ignore               ignore                perform,resumeReading - ignore                ignore
        roomPaused      pauseReading pauseReading         ignore                ignore                - ignore                pauseReading
        timerFired      ignore       ignore               wasPaused             ignore                - wasPaused             ignore
        close           ignore       ignore               resumeReading         resumeReading         - resumeReading         ignore
        """

    /// The same while a room is behind.
    private static let pausedTable = """
        received        perform       overrun       overrun   overrun       overrun       overrun   ignore
        next            finish        room          finish    finish        finish        finish    finish
        nextAfterResult finish        room          finish    finish        finish        finish    finish
        nextOverLimits  finish        room          finish    finish        finish        finish    finish
        nextTurnBegan   ignore        ignore        perform   ignore        ignore        ignore    ignore
        resultsArrived  ignore        ignore        ignore    ignore        ignore        perform   ignore
        outputRead      ignore        ignore        ignore    awaitProgress ignore        ignore    ignore
        outputDrained   ignore        ignore        ignore    perform       ignore        ignore    ignore
        roomPaused      ignore        ignore        ignore    ignore        ignore        ignore    ignore
        roomResumed     resumeReading resumeReading ignore    ignore        awaitNextTurn ignore    resumeReading
        timerFired      wasPaused     wasPaused     wasPaused ignore        wasPaused     wasPaused wasPaused
        close           ignore        ignore        ignore    ignore        ignore        ignore    ignore
        """

    @Test(arguments: [(table, false), (pausedTable, true)])
    func eachEventHasAnActionInEachState(_ table: String, _ isPaused: Bool) throws {
        var events: Set<Event> = []
        for line in table.split(separator: "\n") {
            let words = line.split(separator: " ").map(String.init)
            let event = try #require(Event(rawValue: words[0]))
            events.insert(event)
            for (state, expected) in zip(State.allCases, words.dropFirst()) where expected != "-" {
                var flow = state.flow(isPaused: isPaused)
                #expect(event.apply(to: &flow) == expected, "\(event) in \(state)")
            }
            #expect(words.count == State.allCases.count + 1)
        }
        // A room that is not behind does not say so.
        #expect(events == Set(Event.allCases).subtracting(isPaused ? [] : [.roomResumed]))
    }

    @Test func commandsArePerformedInOrderAcrossAWait() {
        var flow = State.performing.flow(isPaused: false)
        #expect(Event.nextAfterResult.apply(to: &flow) == "results,pauseReading")
        #expect(Event.resultsArrived.apply(to: &flow) == "perform,resumeReading")
        #expect(Event.next.apply(to: &flow) == "command1")
        #expect(Event.next.apply(to: &flow) == "command2")
        #expect(Event.next.apply(to: &flow) == "finish")
        #expect(Event.received.apply(to: &flow) == "perform")
    }

    @Test func commandsThatWaitForARoomContinueInTheTurnAfterIt() {
        var flow = State.room.flow(isPaused: true)
        #expect(Event.roomPaused.apply(to: &flow) == "ignore")
        #expect(Event.roomResumed.apply(to: &flow) == "ignore")
        #expect(Event.roomResumed.apply(to: &flow) == "awaitNextTurn")
        #expect(Event.nextTurnBegan.apply(to: &flow) == "perform,resumeReading")
        #expect(Event.next.apply(to: &flow) == "command1")
    }

    @Test func malformedMessageIsRejectedOnce() {
        var flow = CommandFlow()
        _ = flow.received(CommandReader(Array("{".utf8), encoding: .json))
        #expect(Event.next.apply(to: &flow) == "reject")
        #expect(Event.next.apply(to: &flow) == "finish")
    }

    @Test func commandsAreDroppedWhenTheClientIsClosed() {
        var flow = State.performing.flow(isPaused: false)
        #expect(Event.next.apply(to: &flow) == "command1")
        #expect(Event.close.apply(to: &flow) == "ignore")
        #expect(Event.next.apply(to: &flow) == "finish")
    }

    @Test func pauseThatIsOverIsReportedByOneTimerOnly() {
        var flow = State.idle.flow(isPaused: true)
        #expect(Event.roomResumed.apply(to: &flow) == "resumeReading")
        #expect(Event.timerFired.apply(to: &flow) == "wasPaused")
        #expect(Event.timerFired.apply(to: &flow) == "ignore")
    }

    @Test func waitForOutputIsNoPause() {
        var flow = State.output.flow(isPaused: false)
        #expect(Event.timerFired.apply(to: &flow) == "ignore")
        #expect(Event.timerFired.apply(to: &flow) == "ignore")
        #expect(Event.outputDrained.apply(to: &flow) == "perform,resumeReading")
        #expect(Event.timerFired.apply(to: &flow) == "ignore")
    }
}
