import ArgumentParser
import CommandLineText
import GatewayConfiguration
import GatewayCore
import StreamTransport

/// `sluice connect`: a client for one connection, for people and for pipes. Needs no gateway.
struct ConnectCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "connect",
        abstract: "Talk to a WebSocket, TCP, TLS or Unix socket server from a terminal or a pipe.",
        discussion: """
            URL is ws://HOST[:PORT][/PATH], wss://HOST[:PORT][/PATH], tcp://HOST:PORT, tls://HOST:PORT or unix:///SOCKET; tls, ws and \
            wss over a Unix socket are tls+unix:///SOCKET, ws+unix:///SOCKET[:/PATH] and wss+unix:///SOCKET[:/PATH].

            IN A PIPE, each line of standard input is sent as a text message, and each message that comes is written with an end of \
            line behind it. --binary sends what is read, at most 64 KiB at once, in binary messages, and writes what comes as it is; \
            --binary --lines sends each line as a binary message. On tcp, tls and unix, bytes go through as they are, both ways.

            At the end of standard input a WebSocket is closed with 1000 (--close-code) once nothing has come for 1s: a peer that \
            takes longer to answer needs a longer --wait, and --wait none leaves the end to the peer. On a stream the end goes out \
            as a half-close, and what the peer still sends is written until its own end; --wait bounds how long it may be silent. \
            When the peer of a stream ends first, what is left of standard input is still sent.

            Standard output that is not read stops the reading from the peer; a peer that does not read stops the reading of standard \
            input.

            ON A TERMINAL, lines are edited with the cursor keys, Ctrl-A, E, B, F, D, H, K, U, W and Y; Up and Down go through the \
            lines entered, which are kept in memory only. A line that begins with / is a command: /help lists them. Ctrl-D ends \
            the input; Ctrl-C closes. Colours are left out where NO_COLOR is set.

            SIGINT, SIGTERM and SIGHUP send a Close frame (on a stream the half-close) and wait 6s at most; a second one ends at once, \
            also while nobody reads standard output.

            EXAMPLES
              A conversation by hand:
                sluice connect wss://echo.example/

              One question, one answer:
                echo '{"op":"ping"}' | sluice connect --one ws://127.0.0.1:8080/echo

              A mail server, behind STARTTLS:
                sluice connect --starttls smtp --crlf tcp://mail.example:587

              Events for a program:
                sluice connect --json --wait none wss://feed.example/ < /dev/null

            EXIT CODES
              0    ended in order: closed by us, or by the peer with 1000, 1001 or no code
              64   wrong usage
              65   standard input cannot be sent: no UTF-8, or too long a line
              69   no connection: name, refusal, network, or not open within --timeout
              70   a fault of sluice itself
              71   the system refused a thread or a descriptor
              74   standard input or output failed
              75   --one, and no answer came
              76   ended out of order: reset, cut, silent, or against the protocol
              77   the server refused the opening handshake, or STARTTLS
              78   a certificate, key or other file cannot be used
              79   TLS failed
              80   the peer closed with another code, which is shown
              130  interrupted twice, or before the connection was open
            """)

    @Argument(help: ArgumentHelp("Where to connect to, like ws://127.0.0.1:8080/echo.", valueName: "URL"))
    var url: String

    @OptionGroup(title: "Input and output")
    var carriage: ConnectTransportOptions

    @OptionGroup(title: "WebSocket")
    var webSocket: ConnectWebSocketOptions

    @OptionGroup(title: "TLS")
    var security: ConnectTLSOptions

    func run() async throws {
        let plan = try await Ending.reporting(problemsAs: ExitStatus.usage) { try self.plan() }
        try await Ending.reporting {
            let group: LoopGroup
            do throws(SystemError) {
                group = try LoopGroup(count: 1)
            } catch {
                throw StartFailure.refusedBySystem("\(error)")
            }
            let code = try await ConnectRun(plan: plan, loop: group.loops[0]).untilEnd()
            group.stop()
            throw code
        }
    }

    private func plan() throws -> ConnectPlan {
        var reader = OptionReader()
        let plan = try ConnectPlan(
            self.url, self.carriage, self.webSocket, self.security, reading: &reader)
        guard let plan, reader.problems.isEmpty else { throw ConfigurationProblems(reader.problems) }
        return plan
    }
}

/// Options of `connect` for ws and wss.
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

/// Options of `connect` for input and output.
struct ConnectTransportOptions: ParsableArguments {
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

/// Parses the values of options and collects their problems.
struct OptionReader {
    private(set) var problems: [ConfigurationProblem] = []

    mutating func value<Value>(_ option: String, _ text: String?, _ syntax: ValueSyntax<Value>) -> Value? {
        guard let text else { return nil }
        do throws(ValueSyntaxError) {
            return try syntax.parse(text)
        } catch {
            self.note(option, expected: error.expected, found: QuotedText.quoted(text), remedy: error.remedy)
            return nil
        }
    }

    mutating func note(_ option: String, expected: String, found: String, remedy: String = "") {
        self.problems.append(
            ConfigurationProblem(
                origin: .option(option), keyPath: .root, expected: expected, found: found,
                remedy: remedy))
    }
}
