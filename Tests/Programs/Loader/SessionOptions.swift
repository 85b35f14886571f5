import ArgumentParser
import Foundation
import URLLoading

/// Options of a session, and of its answers to challenges.
struct SessionOptions: ParsableArguments {
    @Option(help: "NAME:PASSWORD for whoever asks.") var user: String?
    @Flag(help: "The tickets of the process's user for servers that ask for Negotiate.") var tickets = false
    @Option(help: "A host that gets tickets without the program's word.") var ticketHost: [String] = []
    @Option(help: ArgumentHelp("Answer this scheme alone.", valueName: "NTLM|Negotiate|HTTPBasic|HTTPDigest")) var only:
        String?
    @Option(help: "Times that a wrong password is offered again.") var tries = 1
    @Option(help: ArgumentHelp("PEM of a certificate for servers that ask for one.", valueName: "file"))
    var certificate: String?
    @Option(help: ArgumentHelp("PEM of its key.", valueName: "file")) var key: String?
    @Flag(help: "Accept every server.") var trustAnyone = false
    @Option(help: ArgumentHelp("DER of the only certificate that is accepted.", valueName: "file")) var pin: String?
    @Option(help: "Seconds without a byte.") var idleTimeout: Double?
    @Option(help: "Seconds for the whole task.") var resourceTimeout: Double?
    @Option(help: "Connections to one host.") var connections: Int?
    @Option(help: "NAME=VALUE, for the host of the first URL.") var cookie: [String] = []
    @Option(help: ArgumentHelp("A folder for a cache on disk.", valueName: "folder")) var cache: String?
    @Flag(help: "Do not speak TLS 1.3.") var tls12 = false
    @Flag(help: "Send requests as early data of TLS 1.3.") var earlyData = false
    @Option(help: ArgumentHelp("A proxy for all connections, loopback included.", valueName: "url")) var proxy: String?
    @Option(help: ArgumentHelp("A script that chooses proxies (PAC).", valueName: "url")) var proxyScript: String?

    func configuration(for url: URL) -> URLSessionConfiguration {
        let configuration = URLSessionConfiguration.ephemeral
        if let idleTimeout { configuration.timeoutIntervalForRequest = idleTimeout }
        if let resourceTimeout { configuration.timeoutIntervalForResource = resourceTimeout }
        if let connections { configuration.httpMaximumConnectionsPerHost = connections }
        configuration.enablesEarlyData = self.earlyData
        if self.tls12 { configuration.tlsMaximumSupportedProtocolVersion = .TLSv12 }
        configuration.ticketHosts = self.ticketHost
        if let proxy {
            let prefixes = proxy.hasPrefix("socks") ? ["SOCKS"] : ["HTTP", "HTTPS"]
            configuration.connectionProxyDictionary = Dictionary(
                uniqueKeysWithValues: prefixes.flatMap { [("\($0)Enable", 1 as Any), ("\($0)Proxy", proxy as Any)] })
        }
        if let proxyScript {
            configuration.connectionProxyDictionary = [
                "ProxyAutoConfigEnable": 1, "ProxyAutoConfigURLString": proxyScript,
            ]
        }
        if let cache {
            let folder = URL(fileURLWithPath: cache, isDirectory: true)
            configuration.urlCache = URLCache(memoryCapacity: 1 << 20, diskCapacity: 64 << 20, directory: folder)
        }
        for cookie in self.cookie.compactMap({ self.made($0, for: url) }) {
            configuration.httpCookieStorage?.setCookie(cookie)
        }
        return configuration
    }

    private func made(_ text: String, for url: URL) -> HTTPCookie? {
        let parts = text.split(separator: "=", maxSplits: 1).map(String.init)
        guard parts.count == 2, let host = url.host else { return nil }
        return HTTPCookie(properties: [.name: parts[0], .value: parts[1], .domain: host, .path: "/"])
    }

    func answers() throws -> ChallengeAnswers {
        let parts = self.user?.split(separator: ":", maxSplits: 1).map(String.init) ?? []
        var identity: ClientIdentity?
        if let certificate, let key {
            identity = try ClientIdentity(
                certificates: Data(contentsOf: URL(fileURLWithPath: certificate)),
                key: Data(contentsOf: URL(fileURLWithPath: key)))
        }
        return ChallengeAnswers(
            password: parts.count == 2
                ? URLCredential(user: parts[0], password: parts[1], persistence: .forSession)
                : self.tickets ? URLCredential(user: "", password: "", persistence: .forSession) : nil,
            only: self.only.map { "NSURLAuthenticationMethod\($0)" },
            tries: self.tries,
            identity: identity.map { URLCredential(identity: $0, certificates: nil, persistence: .forSession) },
            trustsAnyone: self.trustAnyone,
            pin: try self.pin.map { try Data(contentsOf: URL(fileURLWithPath: $0)) })
    }
}
