import ControlPlane
import Foundation
import GatewayCore
import StreamTransport

/// The process's life after it came up: reloads and the end.
struct Service {
    let gateway: Gateway
    let configuration: RunningConfiguration
    let source: ConfigurationSource
    let log: TunnelLog
    let control: ControlServer?

    /// What the service acts upon.
    enum Event {
        case wish(ProcessSignals.Wish)
        /// Draining is over.
        case drained
    }

    /// - Parameter happened: adds to `events`.
    func live(by events: AsyncStream<Event>, _ happened: AsyncStream<Event>.Continuation) async {
        var draining: Task<Void, Never>?
        for await event in events {
            switch event {
            case .wish(.reload):
                guard draining == nil else { continue }
                // Files are read and checked meanwhile, and the first loop has work of its own.
                await Task.detached { await self.reload() }.value
            case .wish(.stop):
                guard draining == nil else {
                    // A second signal: no more patience.
                    await self.gateway.abandon()
                    return
                }
                ServiceSupervisor.notify("STOPPING=1\nSTATUS=draining")
                self.log.note(self.gateway.drainNote)
                self.control?.phase = .draining
                draining = Task {
                    await self.gateway.drain()
                    happened.yield(.drained)
                }
            case .drained:
                return
            }
        }
    }

    /// A file with a problem changes nothing: the service goes on with what it has.
    private func reload() async {
        guard case .file(let path, _) = self.source else {
            return self.log.note("nothing to reload: no file")
        }
        ServiceSupervisor.notifyReloading()
        defer { ServiceSupervisor.notify("READY=1") }
        switch await self.configuration.reload() {
        case .success: self.log.note("reloaded \(path)")
        case .failure(let refusal):
            self.log.note("not reloaded, still running with the former configuration: \(refusal)", level: .error)
        }
    }
}
