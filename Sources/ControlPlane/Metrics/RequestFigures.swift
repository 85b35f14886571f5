import CoreMetrics
import Synchronization

/// Counts the control plane's own requests, by way of swift-metrics: one counter for each operation and status.
final class RequestFigures: Sendable {
    private let shelf = CounterShelf()

    func answered(_ operation: String, status: Int) {
        Counter(
            label: "control_requests", dimensions: [("operation", operation), ("status", "\(status)")],
            factory: self.shelf
        ).increment()
    }

    /// Labels and values, in order of the labels.
    var all: [(labels: [(String, String)], value: Int64)] { self.shelf.all }
}
