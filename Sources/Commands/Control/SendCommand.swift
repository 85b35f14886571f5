import ArgumentParser
import CommandLineText
import ControlAPI
import ControlClient
import GatewayConfiguration
import GatewayCore
import WireText

/// `sluice send`: sends a message, or bytes of a stream.
struct SendCommand: AsyncParsableCommand {
    /// Maximum size of standard input in bytes: the gateway's limit for one request in base64.
    private static let limit = 11 << 20

    static let configuration = CommandConfiguration(
        commandName: "send",
        abstract: "Send a message on a WebSocket, or bytes on a stream.",
        discussion: """
            Without TEXT, sends all of standard input unchanged, at most 11 MiB. On a WebSocket it is one text message, or one \
            binary message with --binary. On a relayed connection, the message is sent between the relayed messages.

            EXAMPLES
              sluice send 17 hello
              sluice send 17 --hex '00 ff 7f'
              sluice send 18 --crlf 'EHLO client.example'
              sluice send 17 --binary < picture.png

            \(ControlHelp.exitCodes)
            """)

    @OptionGroup
    var target: ConnectionArgument

    @Argument(help: .value("TEXT", "Text to send. (default: standard input)"))
    var text: String?

    @Flag(help: "Send a binary message.")
    var binary = false

    @Flag(help: "TEXT is pairs of hexadecimal digits, sent as bytes.")
    var hex = false

    @Flag(help: "Append CRLF to TEXT.")
    var crlf = false

    @Option(
        help: .value(
            "duration", "Maximum time to wait until the data is sent; it stays queued after that. (default: 10s)"))
    var timeout: String?

    func run() async throws {
        try await self.target.control.run(reading: self.plan) { context, plan in
            var body: SendRequest
            if let typed = plan.body { body = typed } else { body = try await self.input(context) }
            body.timeoutMs = plan.timeout.map { $0 / .milliseconds(1) }
            var request = try ControlRequest(.post, ConnectionPath.action("send", self.target.id), json: body)
            request.idleTimeout = (plan.timeout ?? .seconds(10)) + .seconds(30)
            try await context.perform(request, as: SendAnswer.self) { answer in
                let queued = answer.queuedSendBytes > 0 ? ", \(answer.queuedSendBytes) queued" : ""
                let suspended = answer.suspended ? "; the connection is suspended" : ""
                return ["\(answer.state) \(answer.sizeBytes) bytes\(queued)\(suspended)"]
            }
        }
    }

    /// - Returns: also without a body, which is then read from standard input.
    private func plan(_ reader: inout OptionReader) -> (body: SendRequest?, timeout: Duration?)? {
        let timeout = reader.value("--timeout", self.timeout, .duration(.zero ... .seconds(600)))
        guard let text else {
            if self.hex || self.crlf {
                reader.reject(self.hex ? "--hex" : "--crlf", "requires TEXT")
            }
            return (nil, timeout)
        }
        guard self.hex else {
            let whole = text + (self.crlf ? "\r\n" : "")
            return (self.binary ? Self.data(Array(whole.utf8)) : SendRequest { $0.text = whole }, timeout)
        }
        guard let bytes = HexText.bytes(text), !self.crlf else {
            reader.reject(
                "--hex",
                self.crlf
                    ? "cannot be combined with --crlf"
                    : "expected pairs of hexadecimal digits, found \(QuotedText.quoted(text))",
                remedy: self.crlf ? "" : "for example --hex '00 ff 7f'")
            return nil
        }
        return (Self.data(bytes), timeout)
    }

    private static func data(_ bytes: [UInt8]) -> SendRequest {
        SendRequest { $0.data = Base64.encoded(bytes) }
    }

    private func input(_ context: CommandContext) async throws -> SendRequest {
        let all = try await context.readInput(
            limit: Self.limit, remedy: "send it in smaller parts, or with 'sluice attach'")
        if self.binary { return Self.data(all) }
        guard let text = String(validating: all, as: UTF8.self) else {
            throw ConnectFailure(
                .unsendableInput, "standard input is not valid UTF-8, which a text message requires",
                remedy: "use --binary")
        }
        return SendRequest { $0.text = text }
    }
}

/// `sluice receive`: receives from a connection.
struct ReceiveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "receive",
        abstract: "Receive the next message of a WebSocket, or bytes of a stream.",
        discussion: """
            A text message is written followed by a newline, a binary message and bytes of a stream unchanged. Received data is \
            removed from the connection's queue. The exit code is 75 after a timeout. At the end of a stream nothing is \
            written.

            EXAMPLES
              sluice receive 17 --timeout 5s
              sluice receive 17 --follow | while read -r line; do echo "got $line"; done
              sluice receive 18 --min 4 --max 4 | xxd

            \(ControlHelp.exitCodes)
            """)

    @Option(help: .value("duration", "Timeout for each receive, 0s to 10m. (default: 30s)"))
    var timeout: String?

    @Option(help: .value("size", "On a stream: minimum number of bytes to wait for. (default: 1B)"))
    var min: String?

    @Option(help: .value("size", "On a stream: maximum number of bytes to receive, up to 1MiB. (default: 64KiB)"))
    var max: String?

    @Flag(name: .shortAndLong, help: "Keep receiving until the connection is closed.")
    var follow = false

    @OptionGroup
    var target: ConnectionArgument

    func run() async throws {
        try await self.target.control.run(reading: self.request) { context, request in
            repeat {
                guard try await self.receive(request, context) else { return }
            } while self.follow
        }
    }

    private func request(_ reader: inout OptionReader) throws -> ControlRequest? {
        let timeout = reader.value("--timeout", self.timeout, .duration(.zero ... .seconds(600)))
        let body = ReceiveRequest {
            $0.minimumBytes = reader.value("--min", self.min, .size(0...1 << 20))
            $0.maximumBytes = reader.value("--max", self.max, .size(1...1 << 20))
            $0.timeoutMs = timeout.map { $0 / .milliseconds(1) }
        }
        var request = try ControlRequest(.post, ConnectionPath.action("receive", self.target.id), json: body)
        request.idleTimeout = (timeout ?? .seconds(30)) + .seconds(15)
        return request
    }

    /// - Returns: `false` at the end of the connection.
    private func receive(_ request: ControlRequest, _ context: CommandContext) async throws -> Bool {
        let answer: ControlResponse
        do throws(ControlFailure) {
            answer = try await context.session.send(request)
        } catch {
            // With --follow, a clean close is a success.
            if self.follow, error.problem?.status == 410, error.problem?.connection?.endedCleanly == true {
                return false
            }
            throw error
        }
        guard answer.status != 204 else {
            throw ControlFailure(.receiveTimedOut, "nothing received in time", remedy: "try a longer --timeout")
        }
        let received = try answer.decoded(ControlAPI.Received.self)
        if context.printsJSON {
            try await context.print(json: answer.body)
        } else {
            try await context.write(try Self.output(received))
        }
        return received.isAtEnd != true
    }

    private static func output(_ received: ControlAPI.Received) throws(ControlFailure) -> [UInt8] {
        let bytes: [UInt8]
        if let text = received.text {
            bytes = Array((text + "\n").utf8)
        } else {
            guard let data = received.data.flatMap({ Base64.decoded($0.utf8) }) else {
                throw ControlFailure(.invalidResponse, "the response has neither text nor data")
            }
            bytes = data
        }
        // Escape sequences from the peer must not reach a terminal.
        guard Terminal.isOutputTerminal else { return bytes }
        return Array(TerminalText.sanitized(String(decoding: bytes, as: UTF8.self)).utf8)
    }
}
