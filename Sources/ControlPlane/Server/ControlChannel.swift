import HTTPTransport
import HummingbirdCore
import Logging
import NIOCore

/// A connection of the REST interface: HTTP/1.1 over a wire that can leave HTTP behind.
struct ControlChannel: ServerChildChannel {
    typealias Value = HTTP1Channel.Value

    private let http: HTTP1Channel

    init(responder: @escaping HTTPChannelHandler.Responder) {
        var configuration = HTTP1Channel.Configuration(idleTimeout: .seconds(60))
        configuration.httpDecoder.maxHeaderFieldSize = 16 << 10
        configuration.httpDecoder.maxHeaderListSize = 32 << 10
        configuration.httpDecoder.maxHeaderFieldCount = 128
        self.http = HTTP1Channel(responder: responder, configuration: configuration)
    }

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
        do {
            try channel.pipeline.syncOperations.addHandler(UpgradableWire(on: channel.eventLoop))
        } catch {
            return channel.eventLoop.makeFailedFuture(error)
        }
        return self.http.setup(channel: channel, logger: logger)
    }

    func handle(value: Value, logger: Logger) async {
        await self.http.handle(value: value, logger: logger)
    }
}
