import Foundation
import GatewayCore
import StreamTransport

/// Runs the gateway until it is told to stop.
///
/// Prints one line for each listener (`listening on URL`) and then `ready`, unless it is to be quiet. SIGTERM and SIGINT drain, a second one ends
/// at once; SIGHUP reads the configuration's file again.
/// - Throws: `StartFailure` when it does not come up.
func run(_ configuration: GatewayConfiguration, source: ConfigurationSource) async throws {
    let signals = await ProcessSignals()
    let log = TunnelLog(configuration.log)
    let passed = ServiceSupervisor.takeListeningDescriptors().map {
        PassedSocket(name: $0.name, descriptor: $0.descriptor)
    }
    let group: LoopGroup
    let gateway: Gateway
    do {
        group = try LoopGroup(count: configuration.loops ?? Machine.cores)
        gateway = Gateway(loops: group.loops, log: log, configuration: configuration, passedSockets: passed)
        if source.requiresTarget { try await TargetProbe(loop: group.loops[0]).requireAll(of: configuration) }
        let plan = try GatewayPlan(configuration)
        let places = try await gateway.start(plan)
        if !source.isQuiet { Announcement.print(places, configuration, source: source) }
    } catch let error as SystemError {
        throw StartFailure.refusedBySystem("\(error)")
    } catch let error as PlanFault {
        throw StartFailure.refusedBySystem("\(error)")
    }
    ServiceSupervisor.notify("READY=1\nSTATUS=serving")
    await Service(gateway: gateway, source: source, log: log).live(by: signals)
    log.flush()
    group.stop()
}
