/// Told what a listener takes. Held strongly until the listener is closed.
package protocol SocketListenerOwner: AnyObject {
    /// The owner now owns the descriptor.
    func accepted(_ socket: AcceptedSocket, by listener: SocketListener)
    /// No descriptor or memory for a newcomer; accepting is tried again until `acceptingResumed`.
    func acceptingPaused(by listener: SocketListener, _ error: SystemError)
    func acceptingResumed(by listener: SocketListener)
}
