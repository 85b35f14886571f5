import ArgumentParser

/// Options of `connect` about what goes in and out.
struct ConnectCarriageOptions: ParsableArguments {
    @Flag(help: "Send text messages, one for each line. The default on a WebSocket.")
    var text = false

    @Flag(help: "Send binary messages, and write what comes without an end of line.")
    var binary = false

    @Flag(help: "With --binary, a message for each line. On a stream, whole lines both ways, each with LF at its end.")
    var lines = false

    @Flag(help: "On a stream, send lines with CRLF at their end.")
    var crlf = false

    @Flag(
        help: """
            Send all of standard input (a WebSocket: as one message), write one answer (a message, or the first line of a stream), \
            and close.
            """)
    var one = false

    @Option(
        help: ArgumentHelp(
            """
            After the end of standard input, how long nothing may come before we close, 0s to 1d, or none. (default: 1s on a \
            WebSocket, else none)
            """,
            valueName: "duration"))
    var wait: String?

    @Option(
        help: ArgumentHelp(
            "For name, connection, TLS and opening handshake together, 10ms to 10m. (default: 10s)",
            valueName: "duration"))
    var timeout: String?

    @Flag(help: "Write one JSON object for each event: opened, text, data, bytes, line, pong, ended, closed, failed.")
    var json = false

    @Flag(help: "On standard error, errors only.")
    var quiet = false

    @Flag(
        name: [.short, .long], help: "On standard error, tell of addresses, TLS, the opening handshake and close codes."
    )
    var verbose = false
}
