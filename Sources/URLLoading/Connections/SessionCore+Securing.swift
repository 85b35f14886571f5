import Foundation
import SessionTasks
import Synchronization
import TLSEngine

extension SessionCore {
    /// For connections whose protocol is the program's own: no protocol is offered in the handshake.
    func streamContext() -> Result<TLSContext, TLSFailure> {
        self.state.withLock { state in
            if let made = state.streamContext { return made }
            var configuration = TLSConfiguration.of(self.configuration)
            configuration.applicationProtocols = []
            let made = Result { () throws(TLSFailure) in try TLSContext(configuration) }
            state.streamContext = made
            return made
        }
    }

    /// How a connection of a task is secured: its delegate is asked about the server, and for a certificate.
    /// - Parameters:
    ///   - url: of the server, for the challenges.
    ///   - refused: called on any thread before the handshake fails, where the delegate gave up the task.
    func secureSettings(
        _ context: TLSContext, at url: URL, for task: URLSessionTask, of session: URLSession, timeout: Duration,
        refused: @escaping @Sendable () -> Void
    ) -> SecureSettings {
        var settings = SecureSettings(context: context, serverName: url.serverName)
        settings.timeout = timeout
        settings.resumptionKey = "\(url.serverName ?? ""):\(url.port ?? 443)"
        settings.decide = { request, answer in
            self.askTrust(request, at: url, for: task, of: session) { decision, refusal in
                if refusal?.code == .cancelled { refused() }
                answer(decision)
            }
        }
        settings.chooseIdentity = { issuers, answer in
            self.askIdentity(issuers, at: url, for: task, of: session) { identity, refusal in
                // What is refused ends the task, and the handshake with it.
                refusal == nil ? answer(identity) : refused()
            }
        }
        return settings
    }
}
