import NIOCore

/// Credentials of the process at the other end of a Unix socket, at the time it connected (`struct ucred`, unix(7)).
/// Has the memory layout of that struct, because `fetch(from:)` lets the kernel fill it in.
package struct PeerProcess: Sendable, Hashable {
    /// `SO_PEERCRED`, unix(7).
    private static let option = NIOBSDSocket.Option(rawValue: 17)

    package var identifier: Int32
    package var user: UInt32
    package var group: UInt32

    package init(identifier: Int32, user: UInt32, group: UInt32) {
        self.identifier = identifier
        self.user = user
        self.group = group
    }

    /// - Returns: `nil` where the system does not provide credentials.
    static func fetch(from channel: any Channel) -> EventLoopFuture<PeerProcess?> {
        guard let provider = channel as? any SocketOptionProvider else {
            return channel.eventLoop.makeSucceededFuture(nil)
        }
        let credentials: EventLoopFuture<PeerProcess> =
            provider.unsafeGetSocketOption(level: .socket, name: Self.option)
        return credentials.map { PeerProcess?.some($0) }.flatMapErrorThrowing { _ in nil }
    }
}
