import ControlPlane
import Foundation
import GatewayCore
import StreamTransport

/// Runs the gateway until it is told to stop.
///
/// Prints one line for each listener (`listening on URL`) and then `ready`, unless it is to be quiet. SIGTERM and SIGINT drain, a second one ends
/// at once; SIGHUP reads the configuration's file again.
/// - Throws: `StartFailure` when it does not come up.
func run(_ located: LocatedConfiguration, source: ConfigurationSource) async throws {
    // Not sooner: until the configuration is read, a signal just ends the process.
    GatewaySignals.hold()
    var configuration = located.configuration
    source.adjust(&configuration)
    let log = TunnelLog(configuration.log)
    let passed = ServiceSupervisor.takeListeningDescriptors().map {
        PassedSocket(name: $0.name, descriptor: $0.descriptor)
    }
    let group: LoopGroup
    let gateway: Gateway
    let running: RunningConfiguration
    let control: ControlServer?
    let (events, happened) = AsyncStream.makeStream(of: Service.Event.self)
    do {
        group = try LoopGroup(count: configuration.loops ?? Machine.cores, lend: MainThread.shared.lend)
        try await GatewaySignals.hear(on: group.loops[0]) { happened.yield(.wish($0)) }
        gateway = Gateway(loops: group.loops, log: log, configuration: configuration, passedSockets: passed)
        if source.requiresTarget { try await TargetProbe(loop: group.loops[0]).requireAll(of: configuration) }
        let plan = try GatewayPlan(configuration)
        let places = try await gateway.start(plan)
        running = RunningConfiguration(located, gateway: gateway, terms: ConfigurationFile.terms(of: source))
        let (server, place) = try await startControl(
            configuration.control, gateway: gateway, configuration: running, log: log)
        control = server
        if !source.isQuiet { Announcement.print(places, configuration, source: source, control: place) }
    } catch let error as SystemError {
        throw StartFailure.refusedBySystem("\(error)")
    } catch let error as PlanFault {
        throw StartFailure.refusedBySystem("\(error)")
    }
    ServiceSupervisor.notify("READY=1\nSTATUS=serving")
    control?.phase = .ready
    let watchdog = Watchdog.start(group.loops)
    defer { watchdog?.cancel() }
    let service = Service(gateway: gateway, configuration: running, source: source, log: log, control: control)
    await service.live(by: events, happened)
    await control?.stop()
    log.flush()
    group.stop()
}

/// The control plane of the configuration, listening, and where.
/// - Throws: `PlanFault` when an address that was asked for cannot be had; the default one is then done without.
private func startControl(
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
