import Foundation
import GatewayConfiguration
import GatewayCore
import HTTPTypes
import Logging
import NIOCore
import NIOPosix
import ServiceLifecycle
import StreamTransport
import Synchronization
import TLSEngine
import URLLoading

/// The REST interface of a gateway, on event loops of its own.
package final class ControlServer: Sendable {
    /// Time for pending requests to finish during shutdown.
    private static let shutdownTimeout = Duration.seconds(5)
    /// Between two attempts to listen again.
    private static let listeningPause = Duration.milliseconds(500)

    /// An HTTP server. The last one listens; those before it, whose listener failed, serve the connections that they accepted.
    private struct RunningServer {
        let group: ServiceGroup
        let task: Task<Void, Never>
        /// That of its Unix socket.
        let socketFile: SocketFile?
    }

    private let context: ControlContext
    private let settings: ControlSettings
    /// Descriptors that the HTTP server opens without a way to say that there are none: its loop's, and its listener's.
    private static let ownDescriptors = 12

    private let log: TunnelLog
    /// A single event loop, which runs all HTTP connections.
    private let eventLoops: MultiThreadedEventLoopGroup
    /// A single loop, which runs the control plane's WebSockets.
    private let webSocketLoops: LoopGroup
    private let table: ConnectionTable
    /// `nil` before `start()` and after `stop()`.
    private let running = Mutex<[RunningServer]?>(nil)
    /// For new connections; `nil` without TLS.
    private let tlsContext = Mutex<TLSContext?>(nil)

    /// - Throws: `GatewayPlanError` when there are not enough descriptors or threads.
    package init(
        _ settings: ControlSettings, gateway: Gateway, configuration: RunningConfiguration, log: TunnelLog,
        version: String
    ) throws(GatewayPlanError) {
        self.settings = settings
        self.log = log
        var logger = Logger(label: "control") { _ in GatewayLogHandler(log: log) }
        logger.logLevel = .warning
        do throws(SystemError) {
            self.webSocketLoops = try LoopGroup(count: 1)
        } catch {
            throw GatewayPlanError(.system(error), at: .control())
        }
        guard DescriptorReserve.process.canOpen(Self.ownDescriptors) else {
            throw GatewayPlanError(.system(.processDescriptorsExhausted), at: .control())
        }
        self.context = ControlContext(
            gateway: gateway, settings: settings, configuration: configuration, version: version,
            logger: logger, loop: self.webSocketLoops.loops[0])
        self.eventLoops = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        self.table = ConnectionTable(
            on: self.eventLoops.next(), limit: settings.connectionLimit(DescriptorReserve.process.budget),
            clientLimit: settings.maximumConnectionsPerClient)
    }

    /// The phase that the probes report.
    package var phase: ServicePhase {
        get { self.context.phase }
        set { self.context.phase = newValue }
    }

    package var openAPIDocument: OpenAPIDocument {
        OpenAPIDocument(OperationTable.make(self.context).operations, context: self.context)
    }

    /// Listens and serves until `stop()`.
    /// - Returns: the URL it listens on.
    /// - Throws: `GatewayPlanError` if it cannot listen there.
    package func start() async throws(GatewayPlanError) -> String {
        guard let address = self.settings.address else { throw GatewayPlanError(.noAddress, at: .control()) }
        let tlsContext = try self.makeTLSContext(self.settings)
        self.tlsContext.withLock { $0 = tlsContext }
        let descriptor = try self.bind(address)
        // Before the first request, so that lists are complete.
        await self.startBackgroundTransfers()
        self.running.withLock { $0 = [] }
        let own = ListenAddress(try await self.serve(descriptor, at: address))
        await self.context.configuration.follow { [weak self] configuration throws(GatewayPlanError) in
            try self?.prepare(configuration, at: own) ?? {}
        }
        return self.url(own)
    }

    private var system: any StreamTransport.System { self.webSocketLoops.loops[0].system }

    private func bind(_ address: ControlSettings.Address) throws(GatewayPlanError) -> Descriptor {
        var options = ListenOptions()
        options.dualStack = true
        let target: StreamTransport.SocketAddress
        switch address {
        case .tcp(let ip, let port): target = StreamTransport.SocketAddress(ip, port: port)
        case .unix(let path, let mode):
            options.mode = mode
            target = .unix(path: path)
        }
        do throws(SystemError) {
            return try self.system.listen(target, options: options).get()
        } catch {
            let listener = error == .addressInUse ? self.listener(at: address) : nil
            throw GatewayPlanError(
                listener.map { .otherListener($0) } ?? .init(listening: error), at: .control(at: address))
        }
    }

    /// Starts a server on a listening socket.
    /// - Returns: where it listens.
    private func serve(
        _ descriptor: Descriptor, at address: ControlSettings.Address
    ) async throws(GatewayPlanError) -> ControlSettings.Address {
        let bound = address.resolvingPort(self.system.localAddress(descriptor)?.port ?? 0)
        let socketFile: SocketFile? =
            if case .unix(let path, _) = address { self.system.socketFile(at: path) } else { nil }
        let (outcomes, continuation) = AsyncStream.makeStream(of: Result<Void, GatewayPlanError>.self)
        let server = self.server(on: descriptor, isSocketFile: address.isSocketFile) { [weak self] listener in
            listener.closeFuture.whenComplete { [weak self] _ in self?.listenerClosed(at: bound) }
            continuation.yield(.success(()))
        }
        var configuration = ServiceGroupConfiguration(services: [server], logger: self.context.logger)
        configuration.maximumGracefulShutdownDuration = Self.shutdownTimeout
        let group = ServiceGroup(configuration: configuration)
        let task = Task {
            do {
                try await group.run()
            } catch {
                continuation.yield(.failure(GatewayPlanError(.server("\(error)"), at: .control(at: address))))
            }
            continuation.finish()
            self.running.withLock { $0?.removeAll { $0.group === group } }
        }
        let next = RunningServer(group: group, task: task, socketFile: socketFile)
        let isWanted = self.running.withLock { running in
            running?.append(next)
            return running != nil
        }
        if !isWanted { await self.stop(next) }
        for await outcome in outcomes {
            try outcome.get()
            return bound
        }
        throw GatewayPlanError(.server("the server stopped at once"), at: .control(at: address))
    }

    /// Accepts nothing more. The file is removed before, as a successor may replace it as soon as nothing listens.
    private func stop(_ server: RunningServer) async {
        server.socketFile.map { self.system.remove($0) }
        await server.group.triggerGracefulShutdown()
    }

    /// The HTTP server closes its listener after most errors of accept(2), although they concern one connection.
    private func listenerClosed(at address: ControlSettings.Address) {
        guard self.running.withLock({ $0 != nil }) else { return }
        self.log.log("the control plane's listener failed and is opened again", level: .warning)
        Task { await self.listenAgain(at: address) }
    }

    private func listenAgain(at address: ControlSettings.Address) async {
        var hasLogged = false
        while self.running.withLock({ $0 != nil }) {
            do throws(GatewayPlanError) {
                _ = try await self.serve(try self.bind(address), at: address)
                return self.log.log("the control plane listens again")
            } catch {
                if !hasLogged { self.log.log("\(error)", level: .warning) }
                hasLogged = true
            }
            try? await Task.sleep(for: Self.listeningPause)
        }
    }

    private func startBackgroundTransfers() async {
        let (settings, log, context) = (self.settings, self.log, self.context)
        guard let name = settings.transfers.background else { return }
        let error = try? await NIOThreadPool.singleton.runIfActive {
            context.transfers.startBackground(name, settings.transfers, settings.targets)
        }
        if let error { Self.logBackground(error, log) }
    }

    private static func logBackground(_ error: URLError, _ log: TunnelLog) {
        log.log("background transfers: \(error.localizedDescription)", level: .warning)
    }

    /// The name of the gateway's listener that has the address.
    private func listener(at address: ControlSettings.Address) -> String? {
        let own = ListenAddress(address)
        return self.context.gateway.boundListeners.first { bound in
            bound.listener.address.resolvingPort(bound.address.port ?? 0).overlaps(own)
        }?.listener.name
    }

    /// Refuses a listener at the address of the control plane, which the kernel would refuse as that of another process.
    private static func checkOwnAddress(
        _ own: ListenAddress, _ listeners: [ListenerConfiguration]
    ) throws(GatewayPlanError) {
        guard let listener = listeners.first(where: { $0.address.overlaps(own) }) else { return }
        throw GatewayPlanError(.controlPlaneListens, at: .listener(listener.name, at: listener.address))
    }

    private func makeTLSContext(_ settings: ControlSettings) throws(GatewayPlanError) -> TLSContext? {
        guard let tls = settings.tls else { return nil }
        do throws(GatewayPlanError) {
            var configuration = try TLSMaterial.configuration(tls, log: self.log)
            if configuration.applicationProtocols.isEmpty { configuration.applicationProtocols = ["http/1.1"] }
            return try TLSMaterial.context(configuration)
        } catch {
            throw error.located(at: .control())
        }
    }

    /// Prepares a changed configuration, as far as it can change without a restart.
    /// - Parameter own: where the control plane listens until then.
    /// - Returns: a closure that applies it.
    private func prepare(
        _ configuration: Configuration, at own: ListenAddress
    ) throws(GatewayPlanError) -> RunningConfiguration.Adoption {
        try Self.checkOwnAddress(own, configuration.listeners)
        let settings = configuration.control
        let former = self.context.access.current.settings
        let next = former.reloaded(with: settings)
        let tlsContext = try self.makeTLSContext(next)
        return {
            self.tlsContext.withLock { $0 = tlsContext }
            self.table.change {
                $0.limit = next.connectionLimit(DescriptorReserve.process.budget)
                $0.clientLimit = next.maximumConnectionsPerClient
            }
            self.context.limiter.set(limit: next.maximumRequests, rate: next.requestRate)
            self.context.access.replace(next)
            if next.targets != former.targets {
                self.context.transfers.targetsChanged(next.targets) { [log = self.log] in Self.logBackground($0, log) }
            }
            guard settings.address != next.address || (settings.tls == nil) != (next.tls == nil) else { return }
            self.log.log("the control plane keeps its address until the next start", level: .warning)
        }
    }

    private func server(
        on descriptor: Descriptor, isSocketFile: Bool, _ began: @escaping @Sendable (any Channel) -> Void
    ) -> ControlListener {
        let responder = ControlResponder(
            table: OperationTable.make(self.context), access: self.context.access,
            apiKeys: { [context = self.context] in context.hub.currentSettings.apiKeys },
            audit: AuditLog(log: self.log), metrics: self.context.requestMetrics, limiter: self.context.limiter,
            clock: { [context = self.context] in context.now },
            longRunning: LongRunningRequests(registry: self.context.operations), logger: self.context.logger)
        self.context.serveNodes(responder)
        let connections = ControlChannel(
            tlsContext: { [weak self] in self?.tlsContext.withLock { $0 } }, isSocketFile: isSocketFile,
            table: self.table, responder: { try await responder.handle($0, $1, on: $2) })
        return ControlListener(
            descriptor: descriptor, connections: connections, eventLoops: self.eventLoops, log: self.log,
            logger: self.context.logger, began: began)
    }

    private func url(_ address: ListenAddress) -> String {
        switch address {
        case .unix(let path, _): "unix://\(path)"
        case .tcp, .tcpAny, .adopted: "\(self.settings.tls == nil ? "http" : "https")://\(address)"
        }
    }

    /// Finishes pending requests, then stops.
    package func stop() async {
        guard let running = self.running.withLock({ $0.take() }) else { return }
        self.context.gateway.eventLog?.close()
        self.context.stopServingNodes()
        self.context.stopping.occur()
        for server in running { await self.stop(server) }
        for server in running { await server.task.value }
        await self.context.transfers.stop(within: Self.shutdownTimeout)
        self.context.operations.stop()
        try? await self.eventLoops.shutdownGracefully()
        self.webSocketLoops.stop()
    }
}

/// The phase of the gateway's life that the health probes report.
package enum ServicePhase: String, Sendable, CaseIterable {
    case starting
    case ready
    case draining
}

/// Writes the HTTP server's log messages into the gateway's log.
private struct GatewayLogHandler: LogHandler {
    let log: TunnelLog
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.warning

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { self.metadata[key] }
        set { self.metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        let metadata = (event.metadata ?? [:]).sorted { $0.key < $1.key }.map { " \($0.key)=\($0.value)" }.joined()
        self.log.log(
            "control plane: \(event.message)\(metadata)",
            level: LogSettings.Level(rawValue: event.level.rawValue) ?? .info)
    }
}
