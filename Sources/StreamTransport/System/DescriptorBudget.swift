/// How the descriptors of a process are shared out under its limit (RLIMIT_NOFILE).
package struct DescriptorBudget: Hashable, Sendable {
    /// Descriptors that a gateway has open before its first connection: standard streams, loops, listeners.
    private static let ownCount = 32

    /// Descriptors that the system lets the process have.
    package let limit: Int
    /// Descriptors that no connection and no file of a transfer may take: an eighth of the limit, 8 to 64.
    package let reserve: Int

    package init(limit: Int) {
        self.limit = max(0, limit)
        self.reserve = max(8, min(64, limit / 8))
    }

    /// The first number that only the process itself may use. The kernel gives the lowest free number (open(2)), so a
    /// connection that gets this one shows that every number below is in use, whatever for.
    package var ceiling: Int { self.limit - self.reserve }

    /// The first number that listeners and splice pipes may not use either: the rest is left to the runtime, name
    /// lookups and the files that a reload reads.
    package var innerCeiling: Int { self.limit - self.reserve / 2 }

    /// Connections to the control plane for which there are descriptors, at most 512.
    package var controlConnections: Int { max(8, min(512, self.ceiling / 8)) }

    /// Connections on all listeners for which there are descriptors.
    /// - Parameter each: descriptors that a connection takes, 2 where it leads to an upstream.
    package func connections(each: Int) -> Int {
        max(1, (self.ceiling - Self.ownCount - self.controlConnections) / max(1, each))
    }
}
