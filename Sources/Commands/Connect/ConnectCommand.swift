import ArgumentParser
import CommandLineText
import GatewayConfiguration

/// `sluice connect`: a client for one connection, for terminals and pipes. Needs no gateway.
struct ConnectCommand: AsyncParsableCommand {
    private static let exitCodes = ExitStatus.help([
        .success: "clean close: by us, or by the peer with 1000, 1001 or no code",
        .usage: nil,
        .unsendableInput: "standard input cannot be sent: invalid UTF-8, or a line too long",
        .unavailable: "cannot connect: name lookup, refused, network, or --timeout",
        .internalError: nil,
        .systemError: "the system refused a thread or a file descriptor",
        .inputOrOutput: "error on standard input or output",
        .temporaryFailure: "--one, and no reply was received",
        .protocolError: "connection lost: reset, truncated, timed out, or protocol error",
        .notAllowed: "the server refused the opening handshake or STARTTLS",
        .configuration: "a certificate, key or other file is missing or invalid",
        .tls: "TLS failed",
        .peer: "the peer closed with another close code, which is printed",
        .interrupted: "interrupted twice, or before the connection was open",
    ])
    static let configuration = CommandConfiguration(
        commandName: "connect",
        abstract: "Talk to a WebSocket, TCP, TLS or Unix socket server from a terminal or a pipe.",
        discussion: """
            URL is ws://HOST[:PORT][/PATH], wss://HOST[:PORT][/PATH], tcp://HOST:PORT, tls://HOST:PORT or unix:///SOCKET; tls, ws and \
            wss over a Unix socket are tls+unix:///SOCKET, ws+unix:///SOCKET[:/PATH] and wss+unix:///SOCKET[:/PATH].

            IN A PIPE, each line of standard input is sent as a text message, and each received message is written followed by a \
            newline. --binary sends each read of up to 64 KiB as a binary message and writes received data unchanged; \
            --binary --lines sends each line as a binary message. On tcp, tls and unix, bytes are copied unchanged in both directions.

            At the end of standard input, a WebSocket is closed with 1000 (or --close-code) after 1s without incoming data. Use a \
            longer --wait for a slow peer, or --wait none to let the peer close. A stream is half-closed, and incoming data is \
            written until the peer closes; --wait limits the time without incoming data. If the peer of a stream half-closes \
            first, the rest of standard input is still sent.

            Backpressure applies in both directions: reading from the peer pauses while standard output blocks, and reading \
            standard input pauses while the peer does not read.

            ON A TERMINAL, lines are edited with the cursor keys, Ctrl-A, E, B, F, D, H, K, U, W and Y; Up and Down recall \
            previous lines, which are kept in memory only. A line that begins with / is a command: /help lists them. Ctrl-D ends \
            the input; Ctrl-C closes the connection. Set NO_COLOR to disable colours.

            SIGINT, SIGTERM and SIGHUP send a Close frame (on a stream, a half-close) and wait up to 6s for the peer; a second \
            signal exits at once, even if standard output blocks.

            EXAMPLES
              Interactive session:
                sluice connect wss://echo.example/

              One request, one reply:
                echo '{"op":"ping"}' | sluice connect --one ws://127.0.0.1:8080/echo

              Mail server with STARTTLS:
                sluice connect --starttls smtp --crlf tcp://mail.example:587

              JSON events for a program:
                sluice connect --json --wait none wss://feed.example/ < /dev/null

            \(Self.exitCodes)
            """)

    @Argument(help: .value("URL", "URL to connect to, like ws://127.0.0.1:8080/echo."))
    var url: String

    @OptionGroup(title: "Input and output")
    var transport: ConnectTransportOptions

    @OptionGroup(title: "WebSocket")
    var webSocket: ConnectWebSocketOptions

    @OptionGroup(title: "TLS")
    var security: ConnectTLSOptions

    func run() async throws {
        try await ErrorReporter.reporting { throw try await ConnectRun.run(try self.plan()) }
    }

    private func plan() throws -> ConnectPlan {
        var reader = OptionReader()
        let plan = try ConnectPlan(
            self.url, self.transport, self.webSocket, self.security, reading: &reader)
        guard let plan, reader.problems.isEmpty else { throw UsageProblems(problems: reader.problems) }
        return plan
    }
}

/// Options of `connect` for ws and wss.
struct ConnectWebSocketOptions: ParsableArguments {
    @Option(
        name: [.customShort("H"), .long], parsing: .unconditionalSingleValue,
        help: .value(
            "Name: value",
            """
            Header field for the opening handshake. Repeatable. @FILE reads header fields from a file, one per line, which \
            keeps secrets out of the process list.
            """))
    var header: [String] = []

    @Option(help: .value("origin", "Value of the Origin field, like https://app.example."))
    var origin: String?

    @Option(parsing: .singleValue, help: .value("name", "Subprotocol to offer. Repeatable, in order of preference."))
    var subprotocol: [String] = []

    @Flag(help: "Offer permessage-deflate.")
    var compress = false

    @Option(help: .value("duration", "Interval between pings sent, 1s to 1d, or none. (default: none)"))
    var pingInterval: String?

    @Option(
        help: .value(
            "duration", "Time without any data after a ping until the server counts as dead, 1s to 1h. (default: 20s)"))
    var pongTimeout: String?

    @Option(
        help: .value(
            "size", "Largest message in either direction, or longest line with --lines, 1B to 1GiB. (default: 16MiB)"))
    var maxMessageSize: String?

    @Option(help: .value("code", "Close code to send, 1000 to 1003, 1007 to 1014 or 3000 to 4999. (default: 1000)"))
    var closeCode: String?

    @Option(help: .value("text", "Close reason to send, at most 123 bytes. (default: none)"))
    var closeReason: String?
}

/// Options of `connect` for input and output.
struct ConnectTransportOptions: ParsableArguments {
    @Flag(help: "Send each line as a text message. The default on a WebSocket.")
    var text = false

    @Flag(help: "Send binary messages; write received messages without a newline.")
    var binary = false

    @Flag(help: "With --binary, send each line as a message. On a stream, send and write whole lines ending with LF.")
    var lines = false

    @Flag(help: "On a stream, send lines ending with CRLF.")
    var crlf = false

    @Flag(
        help: """
            Send all of standard input (on a WebSocket, as one message), write one reply (a message, or the first line of a \
            stream), and close.
            """)
    var one = false

    @Option(
        help: .value(
            "duration",
            """
            After the end of standard input, close after this long without incoming data, 0s to 1d, or none. (default: 1s on a \
            WebSocket, else none)
            """))
    var wait: String?

    @Option(
        help: .value(
            "duration",
            "Timeout for name lookup, connecting, TLS and opening handshake together, 10ms to 10m. (default: 10s)"))
    var timeout: String?

    @Option(help: .value("url", ProxyOption.help))
    var proxy: String?

    @Flag(help: "Write one JSON object per event: opened, text, data, bytes, line, ended, closed, failed.")
    var json = false

    @Flag(help: "Print only errors on standard error.")
    var quiet = false

    @Flag(
        name: [.short, .long], help: "Print addresses, TLS, opening handshake and close codes on standard error.")
    var verbose = false
}

/// Options of `connect` about TLS.
struct ConnectTLSOptions: ParsableArguments {
    @Flag(
        name: [.customShort("k"), .long], help: "Do not verify the server's certificate. For tests only: insecure.")
    var insecure = false

    @Option(help: .value("file", "CA certificates to trust instead of the system's, PEM."), completion: .file())
    var ca: String?

    @Option(help: .value("file", "Client certificate, PEM or PKCS#12."), completion: .file())
    var certificate: String?

    @Option(help: .value("file", "Private key of the client certificate, PEM."), completion: .file())
    var key: String?

    @Option(help: .value("name", "Server name for SNI and verification. (default: the host of URL)"))
    var serverName: String?

    @Option(
        help: .value(
            "mode",
            """
            On tcp and unix: upgrade to TLS first, using this protocol: \(StartTLSMode.forms). With line, GREETING is the prefix \
            of the line that the server sends first, REQUEST the line that requests TLS, and CONSENT the prefix of the line that \
            accepts it. Nothing that the server sends before TLS is written.
            """))
    var starttls: String?
}
