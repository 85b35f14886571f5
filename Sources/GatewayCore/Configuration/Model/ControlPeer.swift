/// A process on this machine that may use the control plane's Unix socket, known by what the kernel says of it.
package struct ControlPeer: Sendable, Equatable {
    /// The user that it ran as when it connected; `nil` is any.
    package var user: UInt32?
    /// Its group, the effective one alone; `nil` is any.
    package var group: UInt32?
    package var scopes: Set<ControlScope>

    package init(user: UInt32? = nil, group: UInt32? = nil, scopes: Set<ControlScope>) {
        self.user = user
        self.group = group
        self.scopes = scopes
    }
}
