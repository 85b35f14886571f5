import GatewayCore
import HTTPTransport
import HummingbirdCore
import Logging
import NIOCore
import TLSEngine

/// A connection of the REST interface: HTTP/1.1, over TLS or not, over a wire that can leave HTTP behind.
struct ControlChannel: ServerChildChannel {
    struct Value: ServerChildChannelValue {
        let http: HTTP1Channel.Value
        let peer: ConnectionPeer

        var channel: any Channel { self.http.channel }
    }

    private let http: HTTP1Channel
    private let secure: TLSContext?
    private let isSocketFile: Bool

    /// - Parameter secure: for `https://`.
    init(secure: TLSContext?, isSocketFile: Bool, responder: @escaping HTTPChannelHandler.Responder) {
        self.secure = secure
        self.isSocketFile = isSocketFile
        var configuration = HTTP1Channel.Configuration(
            additionalChannelHandlers: [HeadMark()], idleTimeout: .seconds(60))
        configuration.httpDecoder.maxHeaderFieldSize = 16 << 10
        configuration.httpDecoder.maxHeaderListSize = 32 << 10
        configuration.httpDecoder.maxHeaderFieldCount = 128
        self.http = HTTP1Channel(responder: responder, configuration: configuration)
    }

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
        let peer = ConnectionPeer(address: self.isSocketFile ? nil : Self.text(channel.remoteAddress))
        do {
            let pipeline = channel.pipeline.syncOperations
            if let secure = self.secure {
                try pipeline.addHandler(SecureHandler(secure))
                try pipeline.addHandler(CertificateReader(peer))
            }
            try pipeline.addHandler(UpgradableWire(on: channel.eventLoop))
            try pipeline.addHandler(HeadDeadline())
        } catch {
            return channel.eventLoop.makeFailedFuture(error)
        }
        let http = self.http.setup(channel: channel, logger: logger).map { Value(http: $0, peer: peer) }
        return self.isSocketFile ? Self.readProcess(of: channel, into: peer).flatMap { http } : http
    }

    private static func text(_ address: NIOCore.SocketAddress?) -> String? {
        guard let address, let ip = address.ipAddress, let port = address.port else { return nil }
        return address.protocol == .inet6 ? "[\(ip)]:\(port)" : "\(ip):\(port)"
    }

    /// A system that does not tell leaves the process unknown.
    private static func readProcess(of channel: any Channel, into peer: ConnectionPeer) -> EventLoopFuture<Void> {
        guard let provider = channel as? any SocketOptionProvider else {
            return channel.eventLoop.makeSucceededVoidFuture()
        }
        // SO_PEERCRED, unix(7).
        let asked: EventLoopFuture<PeerProcess> = provider.unsafeGetSocketOption(
            level: .socket, name: NIOBSDSocket.Option(rawValue: 17))
        return asked.map { peer.process = $0 }.flatMapErrorThrowing { _ in }
    }

    func handle(value: Value, logger: Logger) async {
        await ConnectionPeer.$current.withValue(value.peer) {
            await self.http.handle(value: value.http, logger: logger)
        }
    }
}
