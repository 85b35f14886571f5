/// Something with a descriptor on a loop.
package protocol Watchable: AnyObject {
    /// The descriptor is ready. Called on the loop, once a turn at most; what is not taken is reported again in the
    /// next turn.
    func ready(_ events: Interest)
}
