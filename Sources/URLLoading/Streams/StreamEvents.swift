internal import CRunLoop
import Foundation

/// Brings the events of a stream to its delegate, on the run loops in which the stream is scheduled.
///
/// A timer that never falls due stands for the stream in each of them, so that it is not left for having nothing to wait
/// for; who has an event makes it fall due.
final class StreamEvents: @unchecked Sendable {
    private struct Place {
        let runLoop: RunLoop
        let mode: RunLoop.Mode
        let timer: Timer
    }

    private let lock = NSLock()
    private var places: [Place] = []
    private var pending: Stream.Event = []
    /// Called with one event at a time, on a run loop.
    private let deliver: (Stream.Event) -> Void

    init(_ deliver: @escaping (Stream.Event) -> Void) {
        self.deliver = deliver
    }

    deinit {
        for place in self.places { place.timer.invalidate() }
    }

    func schedule(in runLoop: RunLoop, mode: RunLoop.Mode) {
        let timer = Timer(fire: .distantFuture, interval: .greatestFiniteMagnitude, repeats: true) { [weak self] _ in
            self?.fire()
        }
        let isDue = self.lock.withLock {
            self.places.append(Place(runLoop: runLoop, mode: mode, timer: timer))
            return !self.pending.isEmpty
        }
        runLoop.add(timer, forMode: mode)
        if isDue { timer.fireDate = Date() }
    }

    func remove(from runLoop: RunLoop, mode: RunLoop.Mode) {
        let removed = self.lock.withLock { () -> [Place] in
            let isMeant = { (place: Place) in place.runLoop === runLoop && place.mode == mode }
            defer { self.places.removeAll(where: isMeant) }
            return self.places.filter(isMeant)
        }
        for place in removed { place.timer.invalidate() }
    }

    /// From any thread. Events wait until the stream is scheduled.
    func raise(_ events: Stream.Event) {
        let timers = self.lock.withLock { () -> [Timer] in
            self.pending.formUnion(events)
            return self.places.map(\.timer)
        }
        let now = Date()
        for timer in timers { timer.fireDate = now }
    }

    private func fire() {
        while true {
            let events = self.lock.withLock {
                defer { self.pending = [] }
                return self.pending
            }
            guard !events.isEmpty else { break }
            let order: [Stream.Event] = [
                .openCompleted, .hasBytesAvailable, .hasSpaceAvailable, .errorOccurred, .endEncountered,
            ]
            for event in order where events.contains(event) { self.deliver(event) }
        }
        // As behind any event of a source: who runs the loop until something has happened goes on.
        sluice_run_loop_return()
    }
}
