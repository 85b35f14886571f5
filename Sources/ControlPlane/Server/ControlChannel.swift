import GatewayCore
import HTTPTransport
import HummingbirdCore
import Logging
import NIOCore
import NIOHTTPTypesHTTP1
import StreamTransport
import TLSEngine

/// A connection of the REST interface: HTTP/1.1, over TLS or not, over a wire that can leave HTTP behind.
struct ControlChannel: ServerChildChannel {
    struct Value: ServerChildChannelValue {
        let http: HTTP1Channel.Value
        let peer: ConnectionPeer

        var channel: any Channel { self.http.channel }
    }

    private let http: HTTP1Channel
    private let secure: @Sendable () -> TLSContext?
    private let isSocketFile: Bool
    private let table: ConnectionTable

    /// - Parameters:
    ///   - secure: for `https://`; asked for each connection.
    ///   - table: of the event loop that all connections are on.
    init(
        secure: @escaping @Sendable () -> TLSContext?, isSocketFile: Bool, table: ConnectionTable,
        responder: @escaping HTTPChannelHandler.Responder
    ) {
        self.secure = secure
        self.isSocketFile = isSocketFile
        self.table = table
        var configuration = HTTP1Channel.Configuration(
            additionalChannelHandlers: [HeadMark(), RefusalDocument()], idleTimeout: .seconds(60))
        configuration.httpDecoder.maxHeaderFieldSize = 16 << 10
        configuration.httpDecoder.maxHeaderListSize = 32 << 10
        configuration.httpDecoder.maxHeaderFieldCount = 128
        self.http = HTTP1Channel(responder: responder, configuration: configuration)
    }

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
        let address = Self.text(channel.remoteAddress)
        // The kernel tells no address of a client that has reset the connection before it was accepted: nobody would
        // read an answer, and the audit log could not say who asked.
        guard self.isSocketFile || address != nil else {
            return channel.eventLoop.makeFailedFuture(ChannelError.eof)
        }
        let peer: ConnectionPeer
        do {
            let place = try self.table.add(channel)
            peer = ConnectionPeer(address: self.isSocketFile ? nil : address, place: place)
            let pipeline = channel.pipeline.syncOperations
            if let secure = self.secure() {
                try pipeline.addHandler(SecureHandler(secure))
                try pipeline.addHandler(CertificateReader(peer))
            }
            try pipeline.addHandler(UpgradableWire(on: channel.eventLoop))
            try pipeline.addHandler(HeadDeadline(place))
        } catch {
            return channel.eventLoop.makeFailedFuture(error)
        }
        let authority = self.isSocketFile ? "localhost" : Self.text(channel.localAddress)
        let http = self.http.setup(channel: channel, logger: logger).flatMapThrowing { http in
            let pipeline = channel.pipeline.syncOperations
            let codec = try pipeline.handler(type: HTTP1ToHTTPServerCodec.self)
            try pipeline.addHandler(RequestHeadHandler(ownAuthority: authority), position: .before(codec))
            return Value(http: http, peer: peer)
        }
        return self.isSocketFile ? PeerProcess.ask(channel).map { peer.process = $0 }.flatMap { http } : http
    }

    private static func text(_ address: NIOCore.SocketAddress?) -> String? {
        guard let address, let ip = address.ipAddress, let port = address.port else { return nil }
        return StreamTransport.SocketAddress(literal: ip, port: UInt16(clamping: port))?.unmapped.description
    }

    func handle(value: Value, logger: Logger) async {
        await ConnectionPeer.$current.withValue(value.peer) {
            await self.http.handle(value: value.http, logger: logger)
        }
    }
}
