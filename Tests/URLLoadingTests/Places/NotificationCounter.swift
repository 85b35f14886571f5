import Foundation
import Synchronization

/// Counts the notifications of one name about one object.
final class NotificationCounter: Sendable {
    private let counted = Mutex(0)

    /// - Parameter object: the poster; a separate one for each test isolates its notifications.
    init(_ name: Notification.Name, object: AnyObject) {
        _ = NotificationCenter.default.addObserver(forName: name, object: object, queue: nil) { [self] _ in
            self.counted.withLock { $0 += 1 }
        }
    }

    var count: Int { self.counted.withLock { $0 } }
}
