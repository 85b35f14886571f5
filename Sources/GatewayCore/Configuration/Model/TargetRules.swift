import StreamTransport

/// Where connections opened by command may lead: to what at least one rule allows.
package struct TargetRules: Sendable, Equatable {
    package let rules: [TargetRule]

    package init(_ rules: [TargetRule]) {
        self.rules = rules
    }

    /// Where only this machine can reach the control plane: addresses that a caller could connect to without us.
    /// Networks of one's own are left out, and metadata services, for whose sake a page or a program might ask; and
    /// Unix sockets, whose files' modes hold the caller but not us.
    package static let ofLocalCallers = TargetRules([TargetRule(.kind(.worldwide)), TargetRule(.kind(.loopback))])
    /// Where others can reach it too.
    package static let ofRemoteCallers = TargetRules([TargetRule(.kind(.worldwide))])

    /// Whether a connection may be tried. To be asked of each address that a name has, when it is tried.
    /// - Parameter host: the name that was asked for, in lower case; `nil` where an address was.
    package func allows(_ address: SocketAddress, askedFor host: String?) -> Bool {
        self.rules.contains { $0.allows(address, askedFor: host) }
    }
}
