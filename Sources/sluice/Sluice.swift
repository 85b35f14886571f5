import ArgumentParser

/// The command, of which everything else is a part.
@main
struct Sluice: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sluice",
        abstract: "A gateway between TCP, TLS, Unix socket and WebSocket peers.",
        discussion: """
            Join two kinds of peers with one command:

              sluice bridge ws://127.0.0.1:6080/vnc tcp://127.0.0.1:5900
              sluice bridge tcp://127.0.0.1:1883 wss://broker.example/mqtt \\
                --subprotocol mqtt

            Or run a service with many listeners, routes and upstreams:

              sluice serve --config /etc/sluice/sluice.yaml

            Or talk to a server yourself, from a terminal or a pipe:

              sluice connect wss://echo.example/

            Or look at a gateway that runs, and steer it:

              sluice ls
              sluice open wss://echo.example/
              sluice get https://example.org/

            Shells complete commands and options with the script that this prints; the last word is bash, zsh or fish:

              sluice --generate-completion-script bash

            EXIT CODES of serve, check and bridge; each other command tells its own
              0   ended as asked
              64  wrong usage of the command line
              69  --require-target was given and the target cannot be reached
              70  a fault of sluice itself
              71  the system refused something at start, like an address in use
              78  a problem in the configuration or the files it names
            """,
        version: Version.text,
        groupedSubcommands: [
            CommandGroup(
                name: "Gateway", subcommands: [ServeCommand.self, CheckCommand.self, BridgeCommand.self]),
            CommandGroup(name: "Client without a gateway", subcommands: [ConnectCommand.self, TokenCommand.self]),
            CommandGroup(
                name: "Connections of a running gateway",
                subcommands: [
                    ListCommand.self, ShowCommand.self, OpenCommand.self, SendCommand.self, ReceiveCommand.self,
                    AttachCommand.self, PingCommand.self, CloseCommand.self, SuspendCommand.self, ResumeCommand.self,
                    SecureCommand.self, SetCommand.self, TapCommand.self,
                ]),
            CommandGroup(name: "Transfers of a running gateway", subcommands: [GetCommand.self, PutCommand.self]),
            CommandGroup(
                name: "A running gateway as a whole",
                subcommands: [
                    HealthCommand.self, EventsCommand.self, DrainCommand.self, ReloadCommand.self,
                    ListenersCommand.self, RoutesCommand.self, UpstreamsCommand.self,
                ]),
        ])
}
