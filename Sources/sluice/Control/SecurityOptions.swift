import ArgumentParser
import ControlAPI
import GatewayCore
import StreamTransport

/// Options about the TLS of a connection that the gateway opens.
struct SecurityOptions: ParsableArguments {
    @Option(help: ArgumentHelp("Name to ask for and verify. (default: the host of URL)", valueName: "name"))
    var serverName: String?

    @Flag(name: [.customShort("k"), .long], help: "Take any certificate of the peer. Only for tests.")
    var insecure = false

    @Option(
        help: ArgumentHelp("Trust these authorities, PEM, instead of the gateway's system's.", valueName: "file"),
        completion: .file())
    var ca: String?

    @Option(
        parsing: .singleValue,
        help: ArgumentHelp("Protocol to offer by ALPN. Repeat for several, best first.", valueName: "name"))
    var alpn: [String] = []

    @Option(help: ArgumentHelp("Oldest version to take, 1.2 or 1.3. (default: 1.2)", valueName: "version"))
    var minTLS: String?

    /// `nil` where nothing was said.
    func request() throws -> TLSRequest? {
        var request = TLSRequest()
        request.serverName = self.serverName
        request.insecure = self.insecure ? true : nil
        request.applicationProtocols = self.alpn.isEmpty ? nil : self.alpn
        request.minimumVersion = self.minTLS
        if let ca {
            do throws(SystemError) {
                request.authorities = String(decoding: try SystemFile.read(ca, limit: 512 << 10), as: UTF8.self)
            } catch {
                throw UnusableFiles("sluice: --ca: \(ca): \(error)")
            }
        }
        return request == TLSRequest() ? nil : request
    }
}
