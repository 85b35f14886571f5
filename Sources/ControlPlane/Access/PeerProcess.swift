import NIOCore

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

extension PeerProcess {
    /// `SO_PEERCRED`, unix(7).
    private static let option = NIOBSDSocket.Option(rawValue: 17)

    /// Asks the kernel who is at the other end of a Unix socket. This type has the layout of the kernel's answer.
    /// - Returns: `nil` where the system does not tell.
    static func ask(_ channel: any Channel) -> EventLoopFuture<PeerProcess?> {
        guard let provider = channel as? any SocketOptionProvider else {
            return channel.eventLoop.makeSucceededFuture(nil)
        }
        let asked: EventLoopFuture<PeerProcess> = provider.unsafeGetSocketOption(level: .socket, name: Self.option)
        return asked.map { PeerProcess?.some($0) }.flatMapErrorThrowing { _ in nil }
    }
}
