import GatewayCore
import HTTPTypes
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import NIOPosix
import ServiceLifecycle
import StreamTransport
import Synchronization
import TLSEngine

/// The REST interface of a gateway, on event loops of its own.
package final class ControlServer: Sendable {
    /// How long requests under way may still take when the server ends.
    static let shutdownTimeout = Duration.seconds(5)

    private let context: ControlContext
    private let settings: ControlSettings
    private let log: TunnelLog
    /// Of one loop, which all connections are on.
    private let loops: MultiThreadedEventLoopGroup
    private let table: ConnectionTable
    private let running = Mutex<(group: ServiceGroup, task: Task<Void, Never>)?>(nil)

    private let ownLoops: LoopGroup
    /// For connections that come from now on; `nil` where they speak no TLS.
    private let secure = Mutex<TLSContext?>(nil)

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
            self.ownLoops = try LoopGroup(count: 1)
        } catch {
            throw GatewayPlanError("control plane: \(error)")
        }
        self.context = ControlContext(
            gateway: gateway, settings: settings, configuration: configuration, version: version,
            logger: logger, loop: self.ownLoops.loops[0])
        self.loops = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        self.table = ConnectionTable(
            on: self.loops.next(), limit: settings.connectionLimit(DescriptorReserve.process.budget),
            clientLimit: settings.maximumConnectionsPerClient)
    }

    /// What the probes answer.
    package var phase: ServicePhase {
        get { self.context.phase }
        set { self.context.phase = newValue }
    }

    /// The description of the whole interface.
    package var openAPIDocument: OpenAPIDocument {
        OpenAPIDocument(
            OperationTable.make(self.context).operations, documents: OperationDocuments.all,
            context: self.context)
    }

    /// Listens and serves until `stop`.
    /// - Returns: where, as a URL.
    /// - Throws: `GatewayPlanError` where the address cannot be had.
    package func start() async throws(GatewayPlanError) -> String {
        guard let address = self.settings.address else { throw GatewayPlanError("the control plane has no address") }
        let (places, continuation) = AsyncStream.makeStream(of: Result<String, GatewayPlanError>.self)
        let secure = try Self.context(self.settings)
        self.secure.withLock { $0 = secure }
        try self.checkFree(address)
        let log = self.log
        let application = self.application(at: address) { channel in
            try? await channel.eventLoop.submit {
                try channel.pipeline.syncOperations.addHandler(
                    AcceptGate(.process, log: log), position: .first)
            }.get()
            continuation.yield(.success(self.url(of: channel, address)))
        }
        let group = ServiceGroup(configuration: self.lifeOf(application))
        let task = Task {
            do {
                try await group.run()
            } catch {
                continuation.yield(.failure(GatewayPlanError("control plane at \(address): \(Self.reason(error))")))
            }
            continuation.finish()
        }
        self.running.withLock { $0 = (group, task) }
        for await place in places {
            if case .unix(let path, let mode) = address {
                _ = self.context.gateway.loops.first?.system.setMode(mode, ofSocketFile: path)
            }
            let url = try place.get()
            await self.context.configuration.follow { [weak self] configuration throws(GatewayPlanError) in
                try self?.prepare(configuration.control) ?? {}
            }
            return url
        }
        throw GatewayPlanError("control plane at \(address): it ended at once")
    }

    /// NIO's own text names the system call and its arguments.
    private static func reason(_ error: any Error) -> String {
        guard let error = error as? IOError else { return "\(error)" }
        let cause = SystemError(error.errnoCode)
        return cause == .addressInUse ? "another process listens here" : "\(cause)"
    }

    /// The server makes its socket file in place of any that is there, that of a living process too.
    private func checkFree(_ address: ControlSettings.Address) throws(GatewayPlanError) {
        guard case .unix(let path, _) = address, SocketFile.isServed(path) else { return }
        throw GatewayPlanError("control plane at \(address): another process listens here")
    }

    private static func context(_ settings: ControlSettings) throws(GatewayPlanError) -> TLSContext? {
        guard let tls = settings.tls else { return nil }
        var configuration = try TLSMaterial.configuration(tls)
        if configuration.applicationProtocols.isEmpty { configuration.applicationProtocols = ["http/1.1"] }
        return try TLSMaterial.context(configuration)
    }

    /// Makes ready what a changed configuration says, as far as that can change while the listener stays.
    /// - Returns: what puts it in force.
    private func prepare(_ settings: ControlSettings) throws(GatewayPlanError) -> RunningConfiguration.Adoption {
        let former = self.context.access.current.settings
        let next = former.reloaded(with: settings)
        let secure: TLSContext?
        do throws(GatewayPlanError) {
            secure = try Self.context(next)
        } catch {
            throw GatewayPlanError("control: \(error)")
        }
        return {
            self.secure.withLock { $0 = secure }
            self.table.set(
                limit: next.connectionLimit(DescriptorReserve.process.budget),
                clientLimit: next.maximumConnectionsPerClient)
            self.context.limiter.set(limit: next.maximumRequests, rate: next.requestRate)
            self.context.access.replace(next)
            if next.targets != former.targets { self.context.transfers.dropSharedSession() }
            guard settings.address != next.address || (settings.tls == nil) != (next.tls == nil) else { return }
            self.log.log("the control plane stays where it is until the next start", level: .warning)
        }
    }

    private func lifeOf(_ application: some Service) -> ServiceGroupConfiguration {
        var life = ServiceGroupConfiguration(services: [application], logger: self.context.logger)
        life.maximumGracefulShutdownDuration = Self.shutdownTimeout
        return life
    }

    private func application(
        at address: ControlSettings.Address, _ listening: @escaping @Sendable (any Channel) async -> Void
    ) -> Application<ControlResponder> {
        let place: BindAddress =
            switch address {
            case .tcp(let ip, let port): .hostname("\(ip)", port: Int(port))
            case .unix(let path, _): .unixDomainSocket(path: path)
            }
        let table = self.table
        return Application(
            responder: ControlResponder(
                table: OperationTable.make(self.context), authorizer: self.context.access,
                audit: LoggedAudit(log: self.log), metrics: self.context.requestMetrics,
                limiter: self.context.limiter,
                clock: { [context = self.context] in context.now },
                longRunning: LongRunningRequests(registry: self.context.operations)),
            server: HTTPServerBuilder {
                ControlChannel(
                    secure: { [weak self] in self?.secure.withLock { $0 } }, isSocketFile: address.isSocketFile,
                    table: table, responder: $0)
            },
            configuration: ApplicationConfiguration(address: place),
            onServerRunning: listening, eventLoopGroupProvider: .shared(self.loops), logger: self.context.logger)
    }

    private func url(of channel: any Channel, _ address: ControlSettings.Address) -> String {
        switch address {
        case .unix(let path, _): "unix://\(path)"
        case .tcp(let ip, let port):
            "\(self.settings.tls == nil ? "http" : "https")://\(ip.bitWidth == 128 ? "[\(ip)]" : "\(ip)"):\(channel.localAddress?.port ?? Int(port))"
        }
    }

    /// Answers what is under way, and ends.
    package func stop() async {
        guard let running = self.running.withLock({ $0.take() }) else { return }
        self.context.gateway.eventLog?.close()
        await running.group.triggerGracefulShutdown()
        await running.task.value
        await self.context.transfers.stop(within: Self.shutdownTimeout)
        self.context.operations.stop()
        if case .unix(let path, _)? = self.settings.address {
            self.context.gateway.loops.first?.system.removeSocketFile(path)
        }
        try? await self.loops.shutdownGracefully()
        self.ownLoops.stop()
    }
}

extension ControlSettings.Address: CustomStringConvertible {
    package var description: String {
        switch self {
        case .tcp(let ip, let port): "\(ip.bitWidth == 128 ? "[\(ip)]" : "\(ip)"):\(port)"
        case .unix(let path, _): path
        }
    }
}

/// Where the gateway is in its life.
package enum ServicePhase: String, Sendable, CaseIterable {
    case starting
    case ready
    case draining
}

/// Leads what the HTTP server logs into the gateway's own log.
struct GatewayLogHandler: LogHandler {
    let log: TunnelLog
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.warning

    init(log: TunnelLog) {
        self.log = log
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { self.metadata[key] }
        set { self.metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        let more = (event.metadata ?? [:]).sorted { $0.key < $1.key }.map { " \($0.key)=\($0.value)" }.joined()
        self.log.log("control plane: \(event.message)\(more)", level: LogSettings.Level(event.level))
    }
}

extension LogSettings.Level {
    init(_ level: Logger.Level) {
        self = LogSettings.Level(rawValue: level.rawValue) ?? .info
    }
}
