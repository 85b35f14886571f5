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

    func live(by signals: ProcessSignals) async {
        var draining: Task<Void, Never>?
        let ended = AsyncStream.makeStream(of: Void.self)
        let events = Self.merged(signals, ended.stream)
        for await event in events {
            switch event {
            case .wish(.reload):
                guard draining == nil else { continue }
                await self.reload()
            case .wish(.stop):
                guard draining == nil else {
                    // A second signal: no more patience.
                    await self.gateway.abandon()
                    return
                }
                ServiceSupervisor.notify("STOPPING=1\nSTATUS=draining")
                self.log.note("draining")
                self.control?.phase = .draining
                draining = Task {
                    await self.gateway.drain()
                    ended.continuation.yield()
                }
            case .ended:
                return
            }
        }
    }

    private enum Event {
        case wish(ProcessSignals.Wish)
        case ended
    }

    private static func merged(_ signals: ProcessSignals, _ ended: AsyncStream<Void>) -> AsyncStream<Event> {
        let wishes = signals.wishes
        return AsyncStream { continuation in
            let first = Task { for await wish in wishes { continuation.yield(.wish(wish)) } }
            let second = Task { for await _ in ended { continuation.yield(.ended) } }
            continuation.onTermination = { _ in
                first.cancel()
                second.cancel()
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
