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
    do throws(SystemError) {
        try GatewaySignals.hold()
    } catch {
        throw StartFailure.refusedBySystem("\(error)")
    }
    ProcessOutput.isPatient = false
    Machine.returnLargeBlocks()
    let descriptors = DescriptorReserve.process.raiseLimit()
    var configuration = located.configuration
    source.adjust(&configuration)
    let log = TunnelLog(configuration.log)
    let events = ServiceEvents()
    let up: GatewayStart
    do {
        up = try await GatewayStart(located, configuration, source: source, log: log) { events.add($0) }
    } catch let error as SystemError {
        throw StartFailure.refusedBySystem("\(error)")
    } catch let error as PlanFault {
        throw StartFailure.refusedBySystem("\(error)")
    }
    note(descriptors, for: configuration, log: log)
    let watchdog = Watchdog(log: log)
    watchdog.tell("READY=1\nSTATUS=serving")
    up.control?.phase = .ready
    let feeding = watchdog.start(up.group.loops)
    defer { feeding?.cancel() }
    let service = Service(
        gateway: up.gateway, configuration: up.running, source: source, log: log, control: up.control,
        watchdog: watchdog, events: events)
    await service.live()
    await up.control?.stop()
    log.flush()
    up.group.stop()
}

private func note(_ limits: (before: Int, now: Int), for configuration: GatewayConfiguration, log: TunnelLog) {
    let before = limits.before == limits.now ? "" : ", raised from \(limits.before)"
    log.note("descriptors: at most \(limits.now)\(before)", level: .info)
    if let shortage = configuration.descriptorShortage(DescriptorReserve.process.budget) {
        log.note(shortage, level: .warning)
    }
}
