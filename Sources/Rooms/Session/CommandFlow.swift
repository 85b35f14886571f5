/// When the commands of one client are performed, and when its connection is read.
///
/// The commands of a message are performed in order. While one of them waits, the connection is not read, so that the
/// commands of at most one message are queued. Rooms that are behind pause reading as well.
package struct CommandFlow: Sendable {
    /// What must happen before the next command is performed.
    package enum Wait: Sendable, Equatable, CaseIterable {
        /// The budget of the turn is spent.
        case nextTurn
        /// The client has not read enough of its output.
        case output
        /// A room is behind.
        case room
        /// Too many commands have no result, `connect` has no reply, or the client enters the room of the next command.
        case results
    }

    /// Limits that the owner measures before each command.
    package struct Limits: Sendable, Equatable {
        package var turnIsSpent: Bool
        package var outputIsFull: Bool
        package var resultsAreMissing: Bool

        package init(turnIsSpent: Bool = false, outputIsFull: Bool = false, resultsAreMissing: Bool = false) {
            self.turnIsSpent = turnIsSpent
            self.outputIsFull = outputIsFull
            self.resultsAreMissing = resultsAreMissing
        }
    }

    /// Commands of one message that are not performed.
    private struct Backlog {
        var reader: CommandReader
        /// The first of them, if it was read and had to wait.
        var next: Command?
    }

    private enum State {
        /// Everything that was received is performed.
        case idle
        case performing(Backlog)
        /// The connection is not read.
        case waiting(Backlog, Wait)
        case closed
    }

    private var state = State.idle
    /// Number of rooms that pause reading.
    private var roomPauses = 0
    /// Since `timerFired`, reading was paused for another reason than the client's output.
    private var wasPaused = false

    package init() {}

    // MARK: Commands

    package enum ReceivedAction: Sendable, Equatable {
        /// Take commands from `next`.
        case perform
        /// Commands of the last message are not performed yet, and the owner has read the connection nevertheless.
        case overrun
        case ignore
    }

    /// A message arrived.
    package mutating func received(_ reader: CommandReader) -> ReceivedAction {
        switch self.state {
        case .idle:
            self.state = .performing(Backlog(reader: reader))
            return .perform
        case .performing, .waiting: return .overrun
        case .closed: return .ignore
        }
    }

    package enum NextAction: Sendable, Equatable {
        /// Perform the command, then call `next` again.
        case perform(Command)
        /// The rest of the message is no command. Report that to the client's machine.
        case reject
        /// Perform no further command until an event returns `.perform`.
        case wait(Wait, pausesReading: Bool)
        case finish
    }

    /// The next command, if the limits permit one.
    /// - Parameter mustWait: whether the command needs the result of an earlier one.
    package mutating func next(within limits: Limits, mustWait: (Command) -> Bool) -> NextAction {
        guard case .performing(var backlog) = self.state else { return .finish }
        if let wait = self.wait(limits) { return self.wait(wait, backlog) }
        self.state = .idle
        do {
            guard let command = try backlog.next.take() ?? backlog.reader.next() else { return .finish }
            if mustWait(command) {
                backlog.next = command
                return self.wait(.results, backlog)
            }
            self.state = .performing(backlog)
            return .perform(command)
        } catch {
            return .reject
        }
    }

    private func wait(_ limits: Limits) -> Wait? {
        if limits.turnIsSpent { return .nextTurn }
        if self.roomPauses > 0 { return .room }
        if limits.outputIsFull { return .output }
        return limits.resultsAreMissing ? .results : nil
    }

    private mutating func wait(_ wait: Wait, _ backlog: Backlog) -> NextAction {
        self.state = .waiting(backlog, wait)
        self.notePause()
        return .wait(wait, pausesReading: self.roomPauses == 0)
    }

    // MARK: What commands wait for

    package enum ResumeAction: Sendable, Equatable {
        /// Take commands from `next`; before that, read the connection again if `resumesReading`.
        case perform(resumesReading: Bool)
        case ignore
    }

    package mutating func nextTurnBegan() -> ResumeAction { self.resume(after: .nextTurn) }

    /// Enough commands have their results.
    package mutating func resultsArrived() -> ResumeAction { self.resume(after: .results) }

    package enum OutputAction: Sendable, Equatable {
        case resume(ResumeAction)
        /// Request the next report.
        case awaitProgress
    }

    /// The client has read output.
    /// - Parameter isDrained: whether it has read enough for further commands.
    package mutating func outputProgressed(isDrained: Bool) -> OutputAction {
        guard case .waiting(_, .output) = self.state else { return .resume(.ignore) }
        return isDrained ? .resume(self.resume(after: .output)) : .awaitProgress
    }

    private mutating func resume(after wait: Wait) -> ResumeAction {
        guard case .waiting(let backlog, wait) = self.state else { return .ignore }
        self.state = .performing(backlog)
        return .perform(resumesReading: self.roomPauses == 0)
    }

    // MARK: Reading

    package enum PauseAction: Sendable, Equatable { case pauseReading, ignore }

    /// A room is behind.
    package mutating func roomPaused() -> PauseAction {
        self.roomPauses += 1
        self.notePause()
        return self.roomPauses == 1 && self.readsCommands ? .pauseReading : .ignore
    }

    package enum RoomAction: Sendable, Equatable {
        case resumeReading
        /// Report the next turn.
        case awaitNextTurn
        case ignore
    }

    /// A room is no longer behind.
    package mutating func roomResumed() -> RoomAction {
        self.roomPauses -= 1
        guard self.roomPauses == 0 else { return .ignore }
        guard case .waiting(let backlog, let wait) = self.state else { return .resumeReading }
        guard wait == .room else { return .ignore }
        self.state = .waiting(backlog, .nextTurn)
        return .awaitNextTurn
    }

    /// Whether no command of the client keeps its connection from being read.
    private var readsCommands: Bool { if case .waiting = self.state { false } else { true } }

    private var waitsForOutput: Bool { if case .waiting(_, .output) = self.state { true } else { false } }

    private mutating func notePause() { if !self.waitsForOutput { self.wasPaused = true } }

    /// - Returns: whether reading was paused since the last call, for another reason than the client's output: an
    ///   answer to a ping may be unread.
    package mutating func timerFired() -> Bool {
        defer { self.wasPaused = (!self.readsCommands || self.roomPauses > 0) && !self.waitsForOutput }
        return self.wasPaused
    }

    // MARK: The end

    /// The client is closed: its commands are dropped.
    /// - Returns: whether to read the connection again, for the peer's answer to the Close.
    package mutating func close() -> Bool {
        defer { self.state = .closed }
        return !self.readsCommands && self.roomPauses == 0
    }
}
