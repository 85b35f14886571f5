import DequeModule
import Foundation
import Synchronization

/// A delegate queue whose operations run on demand, on the test's thread.
final class ManualQueue: OperationQueue, @unchecked Sendable {
    private let blocks = Mutex(Deque<@Sendable () -> Void>())

    override init() {
        super.init()
        self.maxConcurrentOperationCount = 1
    }

    override func addOperation(_ block: @escaping @Sendable () -> Void) {
        self.blocks.withLock { $0.append(block) }
    }

    func runOperations() {
        while let block = self.blocks.withLock({ $0.popFirst() }) { block() }
    }
}
