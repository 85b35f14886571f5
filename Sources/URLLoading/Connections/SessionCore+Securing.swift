import Foundation
import SessionTasks
import StreamTransport
import Synchronization
import TLSEngine

extension SessionCore {
    /// For connections whose protocol is the program's own: no protocol is offered in the handshake.
    func streamContext() -> Result<TLSContext, TLSFailure> {
        self.state.withLock { state in
            if let made = state.streamContext { return made }
            let made = Result { () throws(TLSFailure) in
                var configuration = try TLSConfiguration.of(self.configuration)
                configuration.applicationProtocols = []
                return try TLSContext(configuration)
            }
            state.streamContext = made
            return made
        }
    }
}

extension ConnectionDriving {
    /// How the connection is secured: the delegate is asked about the server, and for a certificate. From any thread.
    /// - Parameters:
    ///   - url: of the server, for the challenges.
    ///   - timeout: for the handshake, without the time that the delegate takes.
    func secureSettings(
        _ context: TLSContext, at url: URL, for task: URLSessionTask, timeout: Duration
    ) -> SecureSettings {
        var settings = SecureSettings(context: context, serverName: url.serverName)
        settings.timeout = timeout
        settings.resumptionKey = "\(url.serverName ?? ""):\(url.port ?? 443)"
        let life = self.life
        settings.decide = { request, answer in
            life.core.askTrust(request, at: url, for: task, of: life.session) { decision, refusal in
                // Before the handshake fails by it.
                life.loop.execute { life.verdict = life.verdict ?? refusal }
                answer(decision)
            }
        }
        settings.chooseIdentity = { issuers, answer in
            life.core.askIdentity(issuers, at: url, for: task, of: life.session) { identity, refusal in
                guard let refusal else { return answer(identity) }
                life.loop.execute { self.fail(refusal) }
            }
        }
        return settings
    }
}
