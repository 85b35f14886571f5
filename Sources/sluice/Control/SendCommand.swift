import ArgumentParser
import CommandLineText
import ControlAPI
import ControlClient
import Foundation
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

    private func input(_ desk: ControlDesk) async throws -> SendRequest {
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
