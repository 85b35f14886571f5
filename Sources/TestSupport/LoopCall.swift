import StreamTransport

/// A closure that a loop runs once, in its next turn. Unlike `Loop.execute` it may capture what is not `Sendable`: the
/// test and the loop share a thread.
final class LoopCall: TurnEndTarget {
    private let body: () -> Void

    init(_ body: @escaping () -> Void) {
        self.body = body
    }

    func turnEnded() {
        self.body()
    }
}
