import Dispatch
import Foundation

/// The signals that steer the process, as a sequence.
final class ProcessSignals: Sendable {
    enum Wish: Sendable {
        case stop
        case reload
    }

    let wishes: AsyncStream<Wish>
    private let sources: [any DispatchSourceSignal]

    init() {
        let (wishes, continuation) = AsyncStream.makeStream(of: Wish.self, bufferingPolicy: .bufferingOldest(16))
        self.wishes = wishes
        let queue = DispatchQueue(label: "signals")
        self.sources = [(SIGTERM, Wish.stop), (SIGINT, .stop), (SIGHUP, .reload)].map { number, wish in
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
            source.setEventHandler { continuation.yield(wish) }
            source.resume()
            return source
        }
        signal(SIGPIPE, SIG_IGN)
    }
}
