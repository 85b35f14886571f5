import Foundation

/// Loads one request for a transfer. Confined to the session's event loop, on which it also tells the transfer.
protocol Loader: AnyObject, Sendable {
    func start()
    /// Ends the load; the transfer hears nothing more of it.
    func stop()
    /// So many more bytes of content are wanted; `Int.max` for all. Nothing is told before it is called.
    func pull(_ count: Int)
    /// While held, nothing moves and no clock runs.
    func hold(_ isHeld: Bool)
    func setPriority(_ priority: Float)
}
