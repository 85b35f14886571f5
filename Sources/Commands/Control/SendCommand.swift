import ArgumentParser
import CommandLineText
import ControlAPI
import ControlClient
import Foundation
import GatewayConfiguration
import GatewayCore

/// `sluice send`: one message, or bytes of a stream.
struct SendCommand: AsyncParsableCommand {
    /// Bytes of standard input: what the gateway takes at once, in base64.
    private static let limit = 11 << 20

    static let configuration = CommandConfiguration(
        commandName: "send",
        abstract: "Send a message on a connection, or bytes on a stream.",
        discussion: """
            Without TEXT, all of standard input is sent, as it is: at most 11 MiB. On a WebSocket it is one text message, with \
            --binary a binary one. Where data of others flows on the connection, the message goes between two of theirs.

            EXAMPLES
              sluice send 17 hello
              sluice send 17 --hex '00 ff 7f'
              sluice send 18 --crlf 'EHLO client.example'
              sluice send 17 --binary < picture.png

            \(ControlHelp.exitCodes)
            """)

    @Argument(help: ArgumentHelp("The connection.", valueName: "ID"))
    var id: String

    @Argument(help: ArgumentHelp("What to send. (default: standard input)", valueName: "TEXT"))
    var text: String?

    @Flag(help: "A binary message.")
    var binary = false

    @Flag(help: "TEXT is pairs of hexadecimal digits; sends these bytes.")
    var hex = false

    @Flag(help: "With a carriage return and a line feed behind TEXT.")
    var crlf = false

    @Option(
        help: ArgumentHelp(
            "How long the system may take to accept it; it stays queued then. (default: 10s)", valueName: "duration"))
    var timeout: String?

    @OptionGroup(title: "Gateway and output")
    var control: ControlOptions

    private struct Plan {
        /// `nil`: of standard input.
        var body: SendRequest?
        var timeout: Duration?
    }

    func run() async throws {
        try await self.control.run(reading: self.plan) { desk, plan in
            var body: SendRequest
            if let typed = plan.body { body = typed } else { body = try await self.input(desk) }
            body.timeoutMs = plan.timeout.map { $0 / .milliseconds(1) }
            var request = try ControlRequest(.post, ConnectionPath.verb("send", self.id), json: body)
            request.patience = (plan.timeout ?? .seconds(10)) + .seconds(30)
            let answer = try await desk.session.send(request)
            try await desk.show(answer, as: SendAnswer.self) { answer in
                let waiting = answer.queuedSendBytes > 0 ? ", \(answer.queuedSendBytes) wait" : ""
                let resting = answer.suspended ? "; the connection is suspended" : ""
                return ["\(answer.state) \(answer.sizeBytes) bytes\(waiting)\(resting)"]
            }
        }
    }

    private func plan(_ reader: inout OptionReader) -> Plan? {
        let timeout = reader.value("--timeout", self.timeout, .duration(.zero ... .seconds(600)))
        guard let text else {
            if self.hex || self.crlf {
                reader.note(self.hex ? "--hex" : "--crlf", expected: "TEXT beside it", found: "none")
            }
            return Plan(body: nil, timeout: timeout)
        }
        guard self.hex else {
            let whole = text + (self.crlf ? "\r\n" : "")
            return Plan(body: self.binary ? Self.data(Array(whole.utf8)) : SendRequest(text: whole), timeout: timeout)
        }
        guard let bytes = HexText.bytes(text), !self.crlf else {
            reader.note(
                "--hex", expected: "pairs of hexadecimal digits\(self.crlf ? ", and no --crlf" : "")",
                found: QuotedText.quoted(text), remedy: "write it like --hex '00 ff 7f'")
            return nil
        }
        return Plan(body: Self.data(bytes), timeout: timeout)
    }

    private static func data(_ bytes: [UInt8]) -> SendRequest {
        SendRequest(data: Data(bytes).base64EncodedString())
    }

    private func input(_ desk: CommandContext) async throws -> SendRequest {
        var all: [UInt8] = []
        reading: while true {
            switch await desk.streams.read() {
            case .bytes(let bytes): all += bytes
            case .end: break reading
            case .failed(let reason): throw ConnectFailure(.inputOrOutput, "standard input: \(reason)")
            }
            guard all.count <= Self.limit else {
                throw ConnectFailure(
                    .unsendableInput, "standard input is longer than \(Self.limit) bytes",
                    remedy: "send it in pieces, or with 'sluice attach'")
            }
        }
        if self.binary { return Self.data(all) }
        guard let text = String(validating: all, as: UTF8.self) else {
            throw ConnectFailure(
                .unsendableInput, "standard input is not UTF-8, as a text has to be", remedy: "send it with --binary")
        }
        return SendRequest(text: text)
    }
}

/// `sluice receive`: receives from a connection.
struct ReceiveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "receive",
        abstract: "Take the next message of a connection, or bytes of a stream.",
        discussion: """
            A text message is written with an end of line behind it, a binary message and the bytes of a stream as they are. What is \
            taken is gone: nobody else receives it. Where nothing comes in time the exit code is 75; at the end of a stream nothing \
            is written.

            EXAMPLES
              sluice receive 17 --timeout 5s
              sluice receive 17 --follow | while read -r line; do echo "got $line"; done
              sluice receive 18 --min 4 --max 4 | xxd

            \(ControlHelp.exitCodes)
            """)

    @Argument(help: ArgumentHelp("The connection.", valueName: "ID"))
    var id: String

    @Option(help: ArgumentHelp("How long to wait, 0s to 10m. (default: 30s)", valueName: "duration"))
    var timeout: String?

    @Option(help: ArgumentHelp("Of a stream: wait for at least so much. (default: 1B)", valueName: "size"))
    var min: String?

    @Option(help: ArgumentHelp("Of a stream: take at most so much, to 1MiB. (default: 64KiB)", valueName: "size"))
    var max: String?

    @Flag(name: .shortAndLong, help: "Go on until the connection ends; --timeout is for each one then.")
    var follow = false

    @OptionGroup(title: "Gateway and output")
    var control: ControlOptions

    func run() async throws {
        try await self.control.run(reading: self.request) { desk, request in
            repeat {
                guard try await self.receive(request, desk) else { return }
            } while self.follow
        }
    }

    private func request(_ reader: inout OptionReader) throws -> ControlRequest? {
        let timeout = reader.value("--timeout", self.timeout, .duration(.zero ... .seconds(600)))
        let body = ReceiveRequest(
            minimumBytes: reader.value("--min", self.min, .size(0...1 << 20)),
            maximumBytes: reader.value("--max", self.max, .size(1...1 << 20)),
            timeoutMs: timeout.map { $0 / .milliseconds(1) })
        var request = try ControlRequest(.post, ConnectionPath.verb("receive", self.id), json: body)
        request.patience = (timeout ?? .seconds(30)) + .seconds(15)
        return request
    }

    /// - Returns: whether there may be more.
    private func receive(_ request: ControlRequest, _ desk: CommandContext) async throws -> Bool {
        let answer: ControlResponse
        do throws(ControlFailure) {
            answer = try await desk.session.send(request)
        } catch {
            // With --follow, the end is a success.
            if self.follow, error.problem?.status == 410, error.problem?.connection?.endedInOrder == true {
                return false
            }
            throw error
        }
        guard answer.status != 204 else {
            throw ControlFailure(.nothingCame, "nothing came in time", remedy: "wait for longer with --timeout")
        }
        let received = try answer.decoded(ControlAPI.Received.self)
        if desk.printsJSON {
            try await desk.print(json: answer.body)
        } else {
            try await desk.write(try Self.output(received))
        }
        return received.isAtEnd != true
    }

    private static func output(_ received: ControlAPI.Received) throws(ControlFailure) -> [UInt8] {
        let bytes: [UInt8]
        if let text = received.text {
            bytes = Array((text + "\n").utf8)
        } else {
            guard let data = received.data.flatMap({ Data(base64Encoded: $0) }) else {
                throw ControlFailure(.nonsense, "the answer has neither text nor data")
            }
            bytes = [UInt8](data)
        }
        // A terminal must not be steered by the peer.
        guard Terminal.showsOutput else { return bytes }
        return Array(TerminalText.safe(String(decoding: bytes, as: UTF8.self)).utf8)
    }
}
