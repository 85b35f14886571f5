import SessionTasks
import StreamTransport
import Synchronization
import TLSEngine

/// An upstream ready to work: its TLS context, and the balancer that all loops share.
package final class UpstreamPlan: Sendable {
    package let configuration: UpstreamConfiguration
    let context: TLSContext?
    let balancer: Mutex<Balancer>

    init(_ configuration: UpstreamConfiguration, context: TLSContext?) {
        self.configuration = configuration
        self.context = context
        self.balancer = Mutex(Balancer(configuration))
    }

    /// How one endpoint is connected to.
    func target(_ endpoint: Int, settings: TunnelSettings, preamble: [UInt8]) -> OpeningTarget {
        let url = self.configuration.endpoints[endpoint].url
        var target = OpeningTarget(url.connectTarget)
        target.socket = settings.keepAlive.socketOptions
        target.connectTimeout = self.configuration.connectTimeout
        target.preamble = preamble
        guard url.scheme.speaksTLS, let context = self.context else { return target }
        var secure = SecureSettings(context: context, serverName: self.configuration.tls.serverName ?? url.hostName)
        secure.timeout = self.configuration.handshakeTimeout
        secure.resumptionKey = url.description
        target.secure = secure
        return target
    }
}
