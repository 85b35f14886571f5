import ByteKernels

/// Decides which of the kernel's messages may change the way to an address.
///
/// Many say nothing new: an interface is reported again with each change of its counters or its queue.
package struct NetworkChanges: Equatable, Sendable {
    /// Most interfaces whose state is kept; every message about another counts as a change.
    package static let linkLimit = 1024
    /// IFF_UP, IFF_RUNNING and IFF_LOWER_UP (netdevice(7)).
    private static let usability: UInt32 = 0x1 | 0x40 | 0x10000

    private var links: [UInt32: UInt32] = [:]

    package init() {}

    /// Takes one datagram.
    /// - Returns: whether the way to some address may be another one now.
    package mutating func received(_ bytes: RawSpan) -> Bool {
        var messages = RouteMessages()
        var changed = false
        while let message = messages.next(in: bytes) { changed = self.changes(by: message) || changed }
        return changed
    }

    private mutating func changes(by message: RouteMessage) -> Bool {
        switch message {
        case .link(let interface, let flags): return self.linkChanged(interface, flags & Self.usability)
        case .linkRemoved(let interface):
            self.links[interface] = nil
            return true
        case .address(_, let isUsable): return isUsable
        case .route, .barrier: return true
        case .overrun:
            self.lost()
            return true
        case .failure, .other: return false
        }
    }

    private mutating func linkChanged(_ interface: UInt32, _ flags: UInt32) -> Bool {
        guard let known = self.links[interface] else {
            if self.links.count < Self.linkLimit { self.links[interface] = flags }
            return true
        }
        self.links[interface] = flags
        return known != flags
    }

    /// The kernel has lost messages: nothing is known any more.
    package mutating func lost() {
        self.links = [:]
    }
}
