import NIOCore
import NIOPosix

/// The event loops of all HTTP transfers of the process. Their threads start when the first is asked for, and stay.
enum TransferLoops {
    /// More would only move packets between caches.
    static let limit = 4

    private static let group = MultiThreadedEventLoopGroup(numberOfThreads: min(System.coreCount, TransferLoops.limit))

    static func next() -> any EventLoop {
        self.group.next()
    }
}
