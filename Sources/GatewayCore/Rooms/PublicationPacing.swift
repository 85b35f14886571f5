import Rooms
import StreamTransport

/// Pauses the reading of a client without a protocol that publishes faster than its room's policy allows: it cannot be
/// told that a message was refused. Nothing is lost, and its own sending waits.
final class PublicationPacing {
    /// Of the policy, in publications a second.
    let rate: Int
    private var meter: RateMeter
    private let loop: Loop
    private let timer = LoopTimer()
    private let resume: () -> Void
    private(set) var isPausing = false

    /// - Parameter resume: called on the loop when the next message may be read.
    init(rate: Int, on loop: Loop, resume: @escaping () -> Void) {
        self.rate = rate
        self.loop = loop
        self.meter = RateMeter(rate: rate, now: .nanoseconds(loop.now.nanoseconds))
        self.resume = resume
    }

    /// A message was published.
    /// - Returns: whether reading must pause.
    func published() -> Bool {
        let delay = self.meter.count(at: .nanoseconds(self.loop.now.nanoseconds))
        guard delay > .zero else { return false }
        self.isPausing = true
        self.loop.arm(self.timer, after: delay, target: self)
        return true
    }

    /// The client has left.
    func stop() {
        self.loop.disarm(self.timer)
        guard self.isPausing else { return }
        self.isPausing = false
        self.resume()
    }
}

extension PublicationPacing: TimerTarget {
    func timerFired(_ timer: LoopTimer) {
        self.isPausing = false
        self.resume()
    }
}
