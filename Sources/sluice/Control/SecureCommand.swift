import ArgumentParser
import CommandLineText
import ControlAPI
import ControlClient
import GatewayCore

/// `sluice secure`: goes over to TLS in the middle of a stream.
struct SecureCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "secure",
        abstract: "Go over to TLS on a stream, as STARTTLS wants it.",
        discussion: """
            What was sent before goes out in the clear first. The peer must know that TLS begins: its protocol says how.

            EXAMPLES
              sluice send 18 --crlf STARTTLS && sluice receive 18 && sluice secure 18

            \(ControlHelp.exitCodes)
            """)

    @Argument(help: ArgumentHelp("The connection.", valueName: "ID"))
    var id: String

    @Option(help: ArgumentHelp("For the handshake, 1ms to 10m. (default: 10s)", valueName: "duration"))
    var timeout: String?

    @OptionGroup(title: "TLS")
    var security: SecurityOptions

    @OptionGroup(title: "Gateway and output")
    var control: ControlOptions

    func run() async throws {
        try await self.control.run(reading: self.request) { desk, request in
            let answer = try await desk.session.send(request)
            try await desk.show(answer, as: Connection.self) { one in
                let facts = [one.tls?.version, one.tls?.cipher].compactMap(\.self).joined(separator: ", ")
                return [TerminalText.line("\(one.id ?? self.id) secured with \(facts)")]
            }
        }
    }

    private func request(_ reader: inout OptionReader) throws -> ControlRequest? {
        let timeout = reader.value("--timeout", self.timeout, .duration(.milliseconds(1) ... .seconds(600)))
        var body = try self.security.request() ?? TLSRequest()
        body.timeoutMs = timeout.map { $0 / .milliseconds(1) }
        var request = try ControlRequest(.post, ConnectionPath.verb("startSecureConnection", self.id), json: body)
        request.patience = (timeout ?? .seconds(10)) + .seconds(30)
        return request
    }
}
