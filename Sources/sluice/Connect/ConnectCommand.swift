import ArgumentParser
import CommandLineText
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
    var carriage: ConnectCarriageOptions

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
