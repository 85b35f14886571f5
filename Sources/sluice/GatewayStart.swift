import ControlPlane
import GatewayCore
import StreamTransport

/// What a gateway consists of once it has come up.
struct GatewayStart {
    let group: LoopGroup
    let gateway: Gateway
    let running: RunningConfiguration
    let control: ControlServer?

    /// Starts loops, listeners and the control plane, and prints where they are unless it is to be quiet.
    /// - Parameters:
    ///   - configuration: what `located` holds, with what the command line has changed in it.
    ///   - heard: is called with what the signals wish, on the first loop.
    /// - Throws: `SystemError`, `PlanFault`, or what a required target said.
    init(
        _ located: LocatedConfiguration, _ configuration: GatewayConfiguration, source: ConfigurationSource,
        log: TunnelLog,
        _ heard: @escaping @Sendable (ProcessSignals.Wish) -> Void
    ) async throws {
        let passed = ServiceSupervisor.takeListeningDescriptors().map {
            PassedSocket(name: $0.name, descriptor: $0.descriptor)
        }
        self.group = try LoopGroup(count: configuration.loops ?? Machine.cores, lend: MainThread.shared.lend)
        let loops = self.group.loops
        try await GatewaySignals.hear(on: loops[0], heard)
        self.gateway = Gateway(loops: loops, log: log, configuration: configuration, passedSockets: passed)
        let plan = try GatewayPlan(configuration)
        if source.requiresTarget { try await TargetProbe(loop: loops[0]).requireAll(of: plan) }
        let places = try await self.gateway.start(plan)
        self.running = RunningConfiguration(
            located, gateway: self.gateway, terms: ConfigurationFile.terms(of: source))
        let (server, place) = try await Self.startControl(
            configuration.control, gateway: self.gateway, configuration: self.running, log: log)
        self.control = server
        if !source.isQuiet { Announcement.print(places, configuration, source: source, control: place) }
    }

    /// The control plane of the configuration, listening, and where.
    /// - Throws: `PlanFault` when an address that was asked for cannot be had; the default one is then done without.
    private static func startControl(
        _ settings: ControlSettings, gateway: Gateway, configuration: RunningConfiguration, log: TunnelLog
    ) async throws(PlanFault) -> (ControlServer?, String?) {
        guard settings.address != nil else { return (nil, nil) }
        let server = try ControlServer(
            settings, gateway: gateway, configuration: configuration, log: log, version: Version.text)
        if !settings.isLocal, settings.tls == nil {
            log.note("control plane without TLS: whoever is on the way can read its tokens", level: .warning)
        }
        do throws(PlanFault) {
            return (server, try await server.start())
        } catch {
            await server.stop()
            guard !settings.isExplicit else { throw error }
            log.note("without a control plane: \(error.description); give control.address another one", level: .warning)
            return (nil, nil)
        }
    }
}
