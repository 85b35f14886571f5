import ArgumentParser
import GatewayCore

/// Options of a bridge about TLS, the clients' side first.
struct TLSOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp("For clients: our certificate, PEM with its chain or PKCS#12.", valueName: "file"),
        completion: .file())
    var certificate: String?

    @Option(
        help: ArgumentHelp("For clients: the certificate's private key, PEM.", valueName: "file"), completion: .file())
    var key: String?

    @Option(
        help: ArgumentHelp(
            "For clients: authorities, PEM; a client must show a certificate that they vouch for.", valueName: "file"),
        completion: .file())
    var clientCA: String?

    @Option(
        parsing: .singleValue,
        help: ArgumentHelp(
            """
            For clients: revocation lists, PEM or DER, of every authority in a client's chain; a client whose certificate they \
            name, or whose authority has no current list, is refused. Repeat for several files.
            """,
            valueName: "file"), completion: .file())
    var clientCRL: [String] = []

    @Option(
        help: ArgumentHelp("For the target: trust these authorities, PEM, instead of the system's.", valueName: "file"),
        completion: .file())
    var ca: String?

    @Option(
        parsing: .singleValue,
        help: ArgumentHelp(
            """
            For the target: revocation lists, PEM or DER, of every authority in its chain; a certificate that they name, or whose \
            authority has no current list, is refused. Repeat for several files.
            """,
            valueName: "file"), completion: .file())
    var crl: [String] = []

    @Option(
        help: ArgumentHelp("For the target: certificate to show when asked, PEM or PKCS#12.", valueName: "file"),
        completion: .file())
    var clientCertificate: String?

    @Option(
        help: ArgumentHelp("For the target: that certificate's private key, PEM.", valueName: "file"),
        completion: .file())
    var clientKey: String?

    @Option(
        help: ArgumentHelp(
            "For the target: name to ask for and verify. (default: the host of TARGET)", valueName: "name"))
    var serverName: String?

    @Flag(help: "For the target: take any certificate. Only for tests.")
    var insecure = false

    var options: [BridgeRequest.Option] {
        BridgeRequest.options(
            (.certificate, [self.certificate]), (.key, [self.key]), (.clientCA, [self.clientCA]),
            (.clientCRL, self.clientCRL), (.ca, [self.ca]), (.crl, self.crl),
            (.clientCertificate, [self.clientCertificate]), (.clientKey, [self.clientKey]),
            (.serverName, [self.serverName]))
            + (self.insecure ? [BridgeRequest.Option(.insecure)] : [])
    }
}
