import ArgumentParser
import GatewayCore

/// `sluice bridge`: one listener, one target, no file.
struct BridgeCommand: GatewayCommand {
    static let configuration = CommandConfiguration(
        commandName: "bridge",
        abstract: "Join clients at one address with a target at another.",
        discussion: """
            LISTEN is where clients come in: tcp://HOST:PORT, tls://HOST:PORT, ws://HOST[:PORT][/PATH], wss://HOST[:PORT][/PATH] or \
            unix:///SOCKET. HOST is an IP address, localhost, or * for all addresses. Port 0 takes a free port and prints it. \
            Without a path every path is taken; {name} in it stands for any segment.

            TARGET is what they reach: tcp://HOST:PORT, tls://HOST:PORT, unix:///SOCKET, ws://HOST[:PORT][/PATH], \
            wss://HOST[:PORT][/PATH], or the words echo and chat. {name} in its path stands for what LISTEN's path had there.

            Durations are like 500ms, 25s, 1m30s, 1h, 7d; sizes like 65536, 64KiB, 1MiB, 16MB.

            EXAMPLES
              A plain MQTT client to a broker behind WebSocket:
                sluice bridge tcp://127.0.0.1:1883 wss://broker.example/mqtt \\
                  --subprotocol mqtt

              A VNC server for pages in a browser, from one site only:
                sluice bridge ws://127.0.0.1:6080/vnc tcp://127.0.0.1:5900 \\
                  --origin https://vnc.example

              A WebSocket server behind another:
                sluice bridge ws://127.0.0.1:8090/app wss://backend.internal/app

              A Unix socket in front of a database with TLS:
                sluice bridge unix:///run/app.sock tls://10.0.0.5:5432

              TLS with client certificates in front of a plain server:
                sluice bridge wss://0.0.0.0:8443/vnc tcp://127.0.0.1:5900 \\
                  --certificate cert.pem --key key.pem --client-ca ca.pem

            EXIT CODES
              0   drained after a signal
              64  wrong usage, or an option with a wrong value
              69  --require-target was given and the target cannot be reached
              70  a fault of sluice itself
              71  the system refused something at start, like an address in use
              78  a certificate, key or other file cannot be used
            """)

    @Argument(help: ArgumentHelp("Where clients come in, like ws://127.0.0.1:6080/vnc.", valueName: "LISTEN"))
    var listen: String

    @Argument(help: ArgumentHelp("What they reach, like tcp://127.0.0.1:5900.", valueName: "TARGET"))
    var target: String

    @OptionGroup(title: "Carrying bytes and messages")
    var carriage: CarriageOptions

    @OptionGroup(title: "TLS")
    var tls: TLSOptions

    @OptionGroup(title: "Limits and times")
    var limits: LimitOptions

    @OptionGroup(title: "Process")
    var process: ProcessOptions

    func run() async throws {
        let located = try await Ending.reporting(problemsAs: ExitStatus.usage) { try self.request.read() }
        try await Ending.reporting {
            try ConfigurationFile.audit(located)
            let terms = BridgeTerms(requiresTarget: self.process.requireTarget, isQuiet: self.process.quiet)
            try await sluice.run(located, source: .bridge(terms))
        }
    }

    private var request: BridgeRequest {
        BridgeRequest(
            listen: self.listen, target: self.target,
            options: self.carriage.options + self.tls.options + self.limits.options + self.process.options)
    }
}
