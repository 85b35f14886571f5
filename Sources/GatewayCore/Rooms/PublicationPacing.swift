import Rooms
import StreamTransport

/// Pauses the reading of a client without a protocol that publishes faster than its room's policy allows: it cannot be
/// told that a message was refused. Nothing is lost, and its own sending waits.
final class PublicationPacing {
    /// Of the client's publications.
    private(set) var meter: RateMeter
    private let loop: Loop
    private let timer = LoopTimer()
    private let resume: () -> Void
    private(set) var isPausing = false

    /// Pauses at once if the meter does not allow a publication.
    /// - Parameter resume: called on the loop when the next message may be read.
    init(_ meter: RateMeter, on loop: Loop, resume: @escaping () -> Void) {
        self.loop = loop
        self.meter = meter
        self.resume = resume
        self.pause(for: meter.delay(at: self.now))
    }

    private var now: Duration { .nanoseconds(self.loop.now.nanoseconds) }

    /// A message was published.
    /// - Returns: whether reading must pause.
    func published() -> Bool {
        self.pause(for: self.meter.count(at: self.now))
        return self.isPausing
    }

    private func pause(for delay: Duration) {
        guard delay > .zero else { return }
        self.isPausing = true
        self.loop.arm(self.timer, after: delay, target: self)
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
