import Foundation
import Observation

/// What a task tells of itself; read and written under the task's lock.
struct TaskFacts {
    let identifier: Int
    var originalRequest: URLRequest?
    var currentRequest: URLRequest?
    var response: URLResponse?
    var error: (any Error)?
    var state = URLSessionTaskState.suspended
    /// Calls of `suspend` that no `resume` has undone; a new task has one.
    var suspensions = 1
    var sent: Int64 = 0
    var received: Int64 = 0
    var expectedToSend: Int64 = 0
    var expectedToReceive: Int64 = NSURLSessionTransferSizeUnknown
    var clientExpectsToSend: Int64 = NSURLSessionTransferSizeUnknown
    var clientExpectsToReceive: Int64 = NSURLSessionTransferSizeUnknown
    var description: String?
    var priority = NSURLSessionTaskPriorityDefault
    var earliestBeginDate: Date?
    var prefersIncrementalDelivery = true
    /// Whether it was resumed at some time.
    var hasBegun = false
    var delegate: DelegateFace?
    var progress: TaskProgress?
    /// Made for who first looks at a property that can be observed.
    var registrar: ObservationRegistrar?

    init(identifier: Int, request: URLRequest?) {
        self.identifier = identifier
        self.originalRequest = request
        self.currentRequest = request
    }
}
