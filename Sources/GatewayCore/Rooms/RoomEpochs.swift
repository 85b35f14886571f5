import Synchronization

/// Epochs of the histories that rooms of this process begin.
///
/// All have the same epoch until one in which something was published ends. So a client may ask for the position of a room
/// that does not exist, for which nothing is stored, and recover from there when the room has been made.
final class RoomEpochs: Sendable {
    private let epoch: Mutex<String>
    private let make: @Sendable () -> String

    /// - Parameter make: an epoch that was never used.
    init(make: @escaping @Sendable () -> String) {
        self.epoch = Mutex(make())
        self.make = make
    }

    /// Of a history that begins now.
    var current: String { self.epoch.withLock(\.self) }

    /// A history of this epoch ends, and its room may begin another one.
    func end(_ epoch: String) {
        let next = self.make
        self.epoch.withLock { if $0 == epoch { $0 = next() } }
    }
}
