/// What the kernel says of the process at the other end of a Unix socket, as it was when it connected (`struct ucred`,
/// unix(7)).
package struct PeerProcess: Sendable, Hashable {
    package var identifier: Int32
    package var user: UInt32
    package var group: UInt32

    package init(identifier: Int32, user: UInt32, group: UInt32) {
        self.identifier = identifier
        self.user = user
        self.group = group
    }
}
