import ArgumentParser

/// Options of `connect` that mean something for ws and wss only.
struct ConnectWebSocketOptions: ParsableArguments {
    @Option(
        name: [.customShort("H"), .long], parsing: .unconditionalSingleValue,
        help: ArgumentHelp(
            """
            Header field for the opening handshake. Repeat for several. @FILE takes the lines of a file, so that no secret is seen \
            in the list of processes.
            """,
            valueName: "Name: value"))
    var header: [String] = []

    @Option(help: ArgumentHelp("Value of the Origin field, like https://app.example.", valueName: "origin"))
    var origin: String?

    @Option(
        parsing: .singleValue,
        help: ArgumentHelp("Subprotocol to offer. Repeat for several, best first.", valueName: "name"))
    var subprotocol: [String] = []

    @Flag(help: "Offer permessage-deflate.")
    var compress = false

    @Option(help: ArgumentHelp("Between pings of ours, 1s to 1d, or none. (default: none)", valueName: "duration"))
    var pingInterval: String?

    @Option(
        help: ArgumentHelp(
            "A server that answers a ping of ours with nothing for this long counts as dead, 1s to 1h. (default: 20s)",
            valueName: "duration"))
    var pongTimeout: String?

    @Option(
        help: ArgumentHelp(
            "Largest message either way (on a stream, with --lines, the longest line), 1B to 1GiB. (default: 16MiB)",
            valueName: "size"))
    var maxMessageSize: String?

    @Option(
        help: ArgumentHelp(
            "Code of our Close frame, 1000 to 1003, 1007 to 1014 or 3000 to 4999. (default: 1000)", valueName: "code"))
    var closeCode: String?

    @Option(help: ArgumentHelp("Reason in our Close frame, at most 123 bytes. (default: none)", valueName: "text"))
    var closeReason: String?
}
