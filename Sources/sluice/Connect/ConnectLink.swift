import SessionTasks
import StreamTransport

/// One connection of `connect`, whatever is spoken on it.
protocol ConnectLink: Sendable {
    /// Begins to open it. Both are called at most once, `closed` always.
    func open(opened: @escaping @Sendable () -> Void, closed: @escaping @Sendable () -> Void) async

    /// What comes next, and what is there behind it; waits for the first. Never empty, and `.end` is the last one.
    func receive() async -> [Received]

    /// Returns when the system has taken all of it, or throws when it will not.
    func send(_ outgoing: [Outgoing]) async throws(TaskFailure)

    /// Time until the Pong.
    func ping(_ payload: String) async throws(TaskFailure) -> Duration

    /// Behind what was sent: a Close frame, or the end of our direction. Only the first call has an effect.
    func end(code: UInt16, reason: String)

    /// Nothing more is read.
    func leave()

    /// Ends at once.
    func abort()

    var facts: ConnectionFacts { get }

    /// What went wrong, once it is closed; `nil` when it ended in order.
    func failure(wasOpen: Bool) -> ConnectFailure?

    /// How it ended, once it is closed.
    func closingFacts(by party: ClosingFacts.Party) -> ClosingFacts
}
