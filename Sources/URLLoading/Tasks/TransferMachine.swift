import StreamTransport

/// State of the transfer of one task: from its first `resume` to its end. Takes events and returns what `TaskLoader` does.
///
/// `Connection` is a connection that left HTTP. The machine owns it from `detached` on, until an action hands it out.
package struct TransferMachine<Connection>: ~Copyable {
    package enum Phase {
        /// Never resumed.
        case waiting
        /// The load runs, and the content it delivers is taken.
        case loading
        /// The delegate was asked for the response disposition. Until it answers, the end of the load is kept here.
        case deciding(LoadEnd?)
        /// The disposition was `becomeStream`; the connection has not left HTTP yet.
        case becomingStream
        /// The load has ended; its last content is being written.
        case finishing
        /// The delegate was notified of the end, or will be.
        case ended
    }

    /// How a load ended before the disposition was known.
    package enum LoadEnd {
        case finished
        case detached(Connection)
    }

    package private(set) var phase = Phase.waiting
    private var timeout: ResourceTimeout

    /// - Parameter timeout: the longest time that the transfer may take, not counting suspensions.
    package init(timeout: Duration) {
        self.timeout = .paused(left: timeout)
    }

    /// Whether the load and its answers still matter.
    package var isActive: Bool {
        switch self.phase {
        case .waiting, .ended: false
        case .loading, .deciding, .becomingStream, .finishing: true
        }
    }

    package var hasEnded: Bool {
        if case .ended = self.phase { true } else { false }
    }

    /// While the task is suspended nothing is received and no timeout runs.
    package var isSuspended: Bool {
        if case .paused = self.timeout { self.isActive } else { false }
    }

    /// When the transfer must have ended; `nil` while it does not run.
    package var deadline: ContinuousInstant? {
        if case .running(let deadline) = self.timeout { deadline } else { nil }
    }

    // MARK: Resuming and suspending

    package enum ResumeAction: Equatable {
        /// Starts the load.
        case begin(deadline: ContinuousInstant)
        /// Continues after a suspension.
        case proceed(deadline: ContinuousInstant)
        case ignore
    }

    /// The task's state has become `running`; several changes may arrive as one.
    package mutating func resumed(now: ContinuousInstant) -> ResumeAction {
        guard !self.hasEnded, let deadline = self.timeout.start(now: now) else { return .ignore }
        guard case .waiting = self.phase else { return .proceed(deadline: deadline) }
        self.phase = .loading
        return .begin(deadline: deadline)
    }

    package mutating func suspended(now: ContinuousInstant) {
        self.timeout.pause(now: now)
    }

    // MARK: The response disposition

    /// The delegate is asked for the disposition of a response: while the content is loading, or of a part of content that
    /// has arrived.
    package mutating func dispositionRequested() {
        switch self.phase {
        case .loading: self.phase = .deciding(nil)
        case .finishing: self.phase = .deciding(.finished)
        case .waiting, .deciding, .becomingStream, .ended: break
        }
    }

    package enum Disposition: Equatable {
        /// The content goes to the delegate, into memory or into a file.
        case receive
        case becomeStream
    }

    package enum DispositionAction {
        /// Pulls content.
        case pull
        case finish
        /// Closes the connection, which nothing uses, and finishes.
        case closeAndFinish(Connection)
        case becomeStream(Connection)
        /// Takes the connection out of HTTP; `detached` follows. If that cannot be, the task fails.
        case detach
        /// Fails the task: the content was received already.
        case refuseStream
        case ignore
    }

    package mutating func dispositionReceived(_ disposition: Disposition) -> DispositionAction {
        guard case .deciding(let end) = self.phase else { return .ignore }
        switch (disposition, end) {
        case (.receive, nil):
            self.phase = .loading
            return .pull
        case (.becomeStream, nil):
            self.phase = .becomingStream
            return .detach
        case (.becomeStream, .finished):
            self.phase = .loading
            return .refuseStream
        case (.receive, .finished):
            self.phase = .finishing
            return .finish
        case (.receive, .detached(let connection)):
            self.phase = .finishing
            return .closeAndFinish(connection)
        case (.becomeStream, .detached(let connection)):
            self.phase = .ended
            self.timeout.stop()
            return .becomeStream(connection)
        }
    }

    // MARK: The end of the load

    /// The load has delivered the whole content.
    /// - Returns: whether to finish: to write the last content, then to call `end()`.
    package mutating func loadFinished() -> Bool {
        switch self.phase {
        case .loading, .becomingStream:
            self.phase = .finishing
            return true
        case .deciding(nil):
            self.phase = .deciding(.finished)
            return false
        case .waiting, .deciding, .finishing, .ended: return false
        }
    }

    package enum DetachAction {
        case closeAndFinish(Connection)
        case becomeStream(Connection)
        /// Closes the connection: the task has ended.
        case close(Connection)
        /// The connection is kept until the disposition is known.
        case keep
    }

    /// The connection left HTTP, because the server switched protocols or at the task's wish: the load has ended.
    package mutating func detached(_ connection: Connection) -> DetachAction {
        switch self.phase {
        case .loading:
            self.phase = .finishing
            return .closeAndFinish(connection)
        case .deciding(nil):
            self.phase = .deciding(.detached(connection))
            return .keep
        case .becomingStream:
            self.phase = .ended
            self.timeout.stop()
            return .becomeStream(connection)
        case .waiting, .deciding, .finishing, .ended: return .close(connection)
        }
    }

    // MARK: The end of the transfer

    package enum EndAction {
        /// Stops the load and completes the task.
        /// - Parameter closing: a connection that nothing will use.
        case complete(closing: Connection?)
        /// It has ended before.
        case ignore
    }

    /// The content is written, or the task failed or was cancelled.
    package mutating func end() -> EndAction {
        guard !self.hasEnded else { return .ignore }
        let phase = self.phase
        self.phase = .ended
        self.timeout.stop()
        guard case .deciding(.detached(let connection)) = phase else { return .complete(closing: nil) }
        return .complete(closing: connection)
    }
}

/// `timeoutIntervalForResource`: it runs while the task does.
private enum ResourceTimeout {
    case paused(left: Duration)
    case running(until: ContinuousInstant)
    case stopped

    /// - Returns: the deadline; `nil` if the timeout runs already, or was stopped.
    mutating func start(now: ContinuousInstant) -> ContinuousInstant? {
        guard case .paused(let left) = self else { return nil }
        self = .running(until: now + left)
        return now + left
    }

    mutating func pause(now: ContinuousInstant) {
        guard case .running(let deadline) = self else { return }
        self = .paused(left: now.duration(to: deadline))
    }

    mutating func stop() { self = .stopped }
}

extension TransferMachine: Sendable where Connection: Sendable {}
extension TransferMachine.Phase: Sendable where Connection: Sendable {}
extension TransferMachine.LoadEnd: Sendable where Connection: Sendable {}
extension TransferMachine.DispositionAction: Sendable where Connection: Sendable {}
extension TransferMachine.DetachAction: Sendable where Connection: Sendable {}
extension TransferMachine.EndAction: Sendable where Connection: Sendable {}
extension TransferMachine.Phase: Equatable where Connection: Equatable {}
extension TransferMachine.LoadEnd: Equatable where Connection: Equatable {}
extension TransferMachine.DispositionAction: Equatable where Connection: Equatable {}
extension TransferMachine.DetachAction: Equatable where Connection: Equatable {}
extension TransferMachine.EndAction: Equatable where Connection: Equatable {}
