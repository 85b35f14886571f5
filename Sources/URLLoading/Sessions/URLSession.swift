import Foundation
import Synchronization

/// Loads what URLs stand for, and holds what its tasks share: connections, cookies, cache, credentials, a delegate.
///
/// For any number of threads. The session holds its delegate until it has become invalid, and so do its tasks the
/// session: one that has a delegate lives until `finishTasksAndInvalidate` or `invalidateAndCancel`.
open class URLSession: NSObject, NSCopying, @unchecked Sendable {
    public typealias AuthChallengeDisposition = URLSessionAuthChallengeDisposition
    public typealias ResponseDisposition = URLSessionResponseDisposition
    public typealias DelayedRequestDisposition = URLSessionDelayedRequestDisposition

    private static let sharedSession = URLSession(isShared: true)

    let core: SessionCore

    /// The session of the program: the default configuration, no delegate. It cannot be invalidated.
    open class var shared: URLSession { self.sharedSession }

    /// As with the default configuration.
    @available(*, deprecated, message: "Use init(configuration:), or the shared session.")
    public override convenience init() {
        self.init(configuration: .default)
    }

    /// A session without a delegate.
    public convenience init(configuration: URLSessionConfiguration) {
        self.init(configuration: configuration, delegate: nil, delegateQueue: nil)
    }

    /// - Parameters:
    ///   - configuration: copied; what is changed in it later changes nothing here.
    ///   - delegate: held until the session is invalid.
    ///   - queue: on which the delegate's messages and all completion handlers run; `nil` makes a serial one. Of a queue
    ///     that runs several operations at a time messages come in any order.
    public init(
        configuration: URLSessionConfiguration, delegate: (any URLSessionDelegate)?, delegateQueue queue: OperationQueue?
    ) {
        self.core = SessionCore(configuration.independent, delegate: delegate, queue: queue, isShared: false)
        super.init()
    }

    private init(isShared: Bool) {
        self.core = SessionCore(.default, delegate: nil, queue: nil, isShared: isShared)
        super.init()
    }

    deinit { self.core.pool.close() }

    open override func copy() -> Any { self.copy(with: nil) }
    /// The session itself.
    open func copy(with zone: NSZone?) -> Any { self }

    open var delegateQueue: OperationQueue { self.core.line.queue }

    /// `nil` once the session has become invalid.
    open var delegate: (any URLSessionDelegate)? { self.core.delegate?.delegate }

    /// A copy: changing it changes nothing here.
    open var configuration: URLSessionConfiguration { self.core.configuration.independent }

    /// A label of the program's own.
    open var sessionDescription: String? {
        get { self.core.state.withLock { $0.label } }
        set { self.core.state.withLock { $0.label = newValue } }
    }

    /// Returns at once. No new task loads any more; when those there are have ended, the delegate is told and dropped.
    /// The shared session goes on.
    open func finishTasksAndInvalidate() { self.core.invalidate(self, cancels: false) }

    /// As `finishTasksAndInvalidate`, and cancels the tasks there are. The shared session goes on.
    open func invalidateAndCancel() { self.core.invalidate(self, cancels: true) }
}

extension URLSessionConfiguration {
    /// A copy of this one.
    var independent: URLSessionConfiguration { self.copy(with: nil) as? URLSessionConfiguration ?? self }
}
