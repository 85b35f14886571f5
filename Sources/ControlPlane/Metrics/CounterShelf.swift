import CoreMetrics
import Synchronization

/// A metrics factory of counters alone, that can be read.
final class CounterShelf: MetricsFactory {
    /// Counters that are told apart; what is beyond is not counted.
    static let limit = 1024

    private final class ShelfCounter: CounterHandler {
        let labels: [(String, String)]
        private let value = Atomic<Int64>(0)

        init(_ labels: [(String, String)]) {
            self.labels = labels
        }

        var current: Int64 { self.value.load(ordering: .relaxed) }

        func increment(by amount: Int64) { self.value.add(amount, ordering: .relaxed) }
        func reset() { self.value.store(0, ordering: .relaxed) }
    }

    private let counters = Mutex<[String: ShelfCounter]>([:])

    var all: [(labels: [(String, String)], value: Int64)] {
        self.counters.withLock { counters in
            counters.sorted { $0.key < $1.key }.map { ($0.value.labels, $0.value.current) }
        }
    }

    func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
        let key = label + dimensions.map { " \($0.0)=\($0.1)" }.joined()
        return self.counters.withLock { counters in
            if let known = counters[key] { return known }
            let made = ShelfCounter(dimensions)
            if counters.count < Self.limit { counters[key] = made }
            return made
        }
    }

    func makeMeter(label: String, dimensions: [(String, String)]) -> any MeterHandler { NOOPMetricsHandler.instance }
    func makeRecorder(label: String, dimensions: [(String, String)], aggregate: Bool) -> any RecorderHandler {
        NOOPMetricsHandler.instance
    }
    func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler { NOOPMetricsHandler.instance }
    func destroyCounter(_ handler: any CounterHandler) {}
    func destroyMeter(_ handler: any MeterHandler) {}
    func destroyRecorder(_ handler: any RecorderHandler) {}
    func destroyTimer(_ handler: any TimerHandler) {}
}
