import DequeModule
import Foundation
import Synchronization

/// A delegate queue whose operations run on demand, on the test's thread.
final class ManualQueue: OperationQueue, @unchecked Sendable {
    private let operationsToRun = Mutex(Deque<Operation>())

    override init() {
        super.init()
        self.maxConcurrentOperationCount = 1
    }

    override func addOperation(_ operation: Operation) {
        self.operationsToRun.withLock { $0.append(operation) }
    }

    func runOperations() {
        while let operation = self.operationsToRun.withLock({ $0.popFirst() }) { operation.main() }
    }
}
