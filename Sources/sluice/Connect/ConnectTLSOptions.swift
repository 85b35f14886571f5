import ArgumentParser
import CommandLineText

/// Options of `connect` about TLS.
struct ConnectTLSOptions: ParsableArguments {
    @Flag(
        name: [.customShort("k"), .long], help: "Take any certificate. Only for tests: anybody may be the server then.")
    var insecure = false

    @Option(
        help: ArgumentHelp("Trust these authorities, PEM, instead of the system's.", valueName: "file"),
        completion: .file())
    var ca: String?

    @Option(
        help: ArgumentHelp("Certificate to show when asked, PEM or PKCS#12.", valueName: "file"), completion: .file())
    var certificate: String?

    @Option(help: ArgumentHelp("That certificate's private key, PEM.", valueName: "file"), completion: .file())
    var key: String?

    @Option(help: ArgumentHelp("Name to ask for and verify. (default: the host of URL)", valueName: "name"))
    var serverName: String?

    @Option(
        help: ArgumentHelp(
            """
            On tcp and unix: first talk the server into TLS, in this protocol: \(StartTLSMode.forms). With line, GREETING is how a \
            line begins that the server says first, REQUEST the line that asks for TLS, and CONSENT how the next line begins if the \
            server agrees. What the server said before TLS is not shown, and has to be asked for again.
            """,
            valueName: "mode"))
    var starttls: String?
}
