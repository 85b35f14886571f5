import ArgumentParser
import CommandLineText
import ControlAPI
import ControlClient
import Foundation
import GatewayCore

/// `sluice receive`: what comes next on a connection.
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
    private func receive(_ request: ControlRequest, _ desk: ControlDesk) async throws -> Bool {
        let answer: ControlAnswer
        do throws(ControlFailure) {
            answer = try await desk.session.send(request)
        } catch {
            // Who follows to the end has come to it.
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
