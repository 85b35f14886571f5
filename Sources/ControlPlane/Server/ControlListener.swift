import GatewayCore
import HummingbirdCore
import Logging
import NIOCore
import NIOExtras
import NIOPosix
import ServiceLifecycle
import StreamTransport

/// The HTTP server on a socket that listens already. HummingbirdCore's `Server` binds an address itself, and at its end
/// removes the file of a Unix socket even if another process has it by then.
struct ControlListener: Service {
    let descriptor: Descriptor
    let connections: ControlChannel
    let eventLoops: MultiThreadedEventLoopGroup
    let log: TunnelLog
    let logger: Logger
    /// Called once it accepts connections.
    let began: @Sendable (any Channel) -> Void

    func run() async throws {
        let quiescing = ServerQuiescingHelper(group: self.eventLoops)
        let log = self.log
        let listener = try await ServerBootstrap(group: self.eventLoops)
            .serverChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let pipeline = channel.pipeline.syncOperations
                    try pipeline.addHandler(AcceptGate(.process, log: log))
                    try pipeline.addHandler(quiescing.makeServerChannelHandler(channel: channel))
                }
            }
            .childChannelOption(.allowRemoteHalfClosure, value: true)
            .bind(self.descriptor.number) { [connections, logger] in connections.setup(channel: $0, logger: logger) }
        // SwiftNIO shortened the queue of connections that are not accepted yet.
        Machine.setBacklog(ListenOptions().backlog, of: self.descriptor)
        await withGracefulShutdownHandler {
            self.began(listener.channel)
            await self.serve(listener)
        } onGracefulShutdown: {
            quiescing.initiateShutdown(promise: nil)
        }
    }

    /// Returns when the listener and all connections are closed.
    private func serve(_ listener: NIOAsyncChannel<ControlChannel.Value, Never>) async {
        await withDiscardingTaskGroup { group in
            do {
                try await listener.executeThenClose { accepted in
                    for try await connection in accepted {
                        group.addTask { await self.connections.handle(value: connection, logger: self.logger) }
                    }
                }
            } catch {
                self.logger.error("the listener failed", metadata: ["error": "\(error)"])
            }
        }
    }
}
