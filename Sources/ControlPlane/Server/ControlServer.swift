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
    /// Connections at once; more wait in the kernel.
    static let connectionLimit = 512
    /// How long requests under way may still take when the server ends.
    static let patience = Duration.seconds(5)

    private let context: ControlContext
    private let settings: ControlSettings
    private let log: TunnelLog
    private let loops: MultiThreadedEventLoopGroup
    private let running = Mutex<(group: ServiceGroup, task: Task<Void, Never>)?>(nil)

    private let ownLoops: LoopGroup

    /// - Throws: `PlanFault` when there are not enough descriptors or threads.
    package init(
        _ settings: ControlSettings, gateway: Gateway, configuration: RunningConfiguration, log: TunnelLog,
        version: String
    ) throws(PlanFault) {
        self.settings = settings
        self.log = log
        var logger = Logger(label: "control") { _ in GatewayLogHandler(log: log) }
        logger.logLevel = .warning
        do throws(SystemError) {
            self.ownLoops = try LoopGroup(count: 1)
        } catch {
            throw PlanFault("control plane: \(error)")
        }
        self.context = ControlContext(
            gateway: gateway, settings: settings, configuration: configuration, version: version,
            logger: logger, loop: self.ownLoops.loops[0])
        self.loops = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    }

    /// What the probes answer.
    package var phase: ServicePhase {
        get { self.context.phase }
        set { self.context.phase = newValue }
    }

    /// The description of the whole interface.
    package var document: OpenAPIDocument {
        OpenAPIDocument(
            OperationTable.make(self.context).operations, documents: OperationDocuments.all,
            context: self.context)
    }

    /// Listens and serves until `stop`.
    /// - Returns: where, as a URL.
    /// - Throws: `PlanFault` where the address cannot be had.
    package func start() async throws(PlanFault) -> String {
        guard let address = self.settings.address else { throw PlanFault("the control plane has no address") }
        let (places, continuation) = AsyncStream.makeStream(of: Result<String, PlanFault>.self)
        let secure = try self.secureContext()
        let application = self.application(at: address, secure: secure) { channel in
            continuation.yield(.success(self.url(of: channel, address)))
        }
        let group = ServiceGroup(configuration: self.lifeOf(application))
        let task = Task {
            do {
                try await group.run()
            } catch {
                continuation.yield(.failure(PlanFault("control plane at \(address): \(error)")))
            }
            continuation.finish()
        }
        self.running.withLock { $0 = (group, task) }
        for await place in places {
            if case .unix(let path, let mode) = address {
                _ = self.context.gateway.loops.first?.system.setMode(mode, ofSocketFile: path)
            }
            return try place.get()
        }
        throw PlanFault("control plane at \(address): it ended at once")
    }

    private func secureContext() throws(PlanFault) -> TLSContext? {
        guard let tls = self.settings.tls else { return nil }
        var configuration = try TLSMaterial.configuration(tls)
        if configuration.applicationProtocols.isEmpty { configuration.applicationProtocols = ["http/1.1"] }
        return try TLSMaterial.context(configuration)
    }

    private func lifeOf(_ application: some Service) -> ServiceGroupConfiguration {
        var life = ServiceGroupConfiguration(services: [application], logger: self.context.logger)
        life.maximumGracefulShutdownDuration = Self.patience
        return life
    }

    private func application(
        at address: ControlSettings.Address, secure: TLSContext?,
        _ listening: @escaping @Sendable (any Channel) async -> Void
    ) -> Application<ControlResponder> {
        let place: BindAddress =
            switch address {
            case .tcp(let ip, let port): .hostname("\(ip)", port: Int(port))
            case .unix(let path, _): .unixDomainSocket(path: path)
            }
        let limit = MaximumAvailableConnections(Self.connectionLimit, logger: self.context.logger)
        return Application(
            responder: ControlResponder(
                table: OperationTable.make(self.context), gatekeeper: ConfiguredGatekeeper(self.settings),
                audit: LoggedAudit(log: self.log), figures: self.context.requests,
                budget: RequestBudget(limit: self.settings.maximumRequests, rate: self.settings.requestRate),
                clock: { [context = self.context] in context.now }),
            server: HTTPServerBuilder {
                ControlChannel(secure: secure, isSocketFile: address.isSocketFile, responder: $0)
            },
            configuration: ApplicationConfiguration(address: place, availableConnectionsDelegate: limit),
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
        self.context.gateway.journal?.close()
        await running.group.triggerGracefulShutdown()
        await running.task.value
        await self.context.transfers.stop(within: Self.patience)
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
