import CLinux

/// Process at the other end of a Unix socket (`SO_PEERCRED`, unix(7)).
package enum PeerCredentials {
    /// Effective user of the process that connected, or that listened; `nil` if the system does not say.
    package static func user(of descriptor: Descriptor) -> UInt32? {
        let user = sluice_peer_user(descriptor.number)
        return user < 0 ? nil : UInt32(truncatingIfNeeded: user)
    }

    /// Effective user of this process.
    package static var ownUser: UInt32 { geteuid() }
}
