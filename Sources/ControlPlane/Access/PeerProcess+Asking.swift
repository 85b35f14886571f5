import NIOCore

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
