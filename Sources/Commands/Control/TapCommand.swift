import ArgumentParser
import CommandLineText
import ControlAPI
import ControlClient
import Foundation
import GatewayConfiguration
import GatewayCore
import WireText

/// `sluice tap`: prints a copy of a connection's data.
struct TapCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "tap",
        abstract: "Print a copy of the data of a connection.",
        discussion: """
            Prints one line per message or chunk until the connection is closed or Ctrl-C: < was received from the peer, > was \
            sent to it. If the output is too slow, messages are skipped and counted; the connection is never slowed down.

            EXAMPLES
              sluice tap 17
              sluice tap 17 --sample 100 --max 64B --json

            \(ControlHelp.exitCodes)
            """)

    @Option(help: .value("number", "Print every N-th message only. (default: 1)"))
    var sample: String?

    @Option(help: .value("size", "Maximum size printed per message, up to 64KiB. (default: 4KiB)"))
    var max: String?

    @OptionGroup
    var target: ConnectionArgument

    func run() async throws {
        try await self.target.control.run(reading: self.request) { context, request in
            let (headers, body) = try await context.session.open(request, accept: "text/event-stream")
            guard headers.mediaType == "text/event-stream" else {
                throw ControlFailure(.invalidResponse, "the response is not an event stream")
            }
            var parser = EventStreamParser()
            while let bytes = try await body.next() {
                for event in try parser.events(bytes) {
                    try await self.show(event, context)
                    if event.type == "end" { return }
                }
            }
        }
    }

    private func request(_ reader: inout OptionReader) -> ControlRequest? {
        let sample = reader.value("--sample", self.sample, .integer(1...1_000_000))
        let limit = reader.value("--max", self.max, .size(0...64 << 10))
        let parameters = [
            sample.map { ControlRequest.Parameter("sample", "\($0)") },
            limit.map { ControlRequest.Parameter("maxBytes", "\($0)") },
        ]
        var request = ControlRequest(
            .get, ConnectionPath.connection(self.target.id) + "/tap", parameters.compactMap(\.self))
        request.idleTimeout = .seconds(3600)
        return request
    }

    private func show(_ event: ServerSentEvent, _ context: CommandContext) async throws {
        if context.printsJSON { return try await context.print(json: Data(event.data)) }
        guard let record = try? JSONDecoder().decode(TapRecord.self, from: Data(event.data)) else {
            throw ControlFailure(.invalidResponse, "the gateway sent an invalid tap event")
        }
        try await context.print(Self.lines(record))
    }

    private static func lines(_ record: TapRecord) -> [String] {
        let skipped = record.skipped > 0 ? ["* \(record.skipped) skipped"] : []
        guard let direction = record.way else { return skipped }
        let mark = direction == "received" ? "<" : ">"
        let size = "(\(record.content ?? "?"), \(record.sizeBytes ?? 0) bytes)"
        let content =
            record.text.map { TerminalText.singleLine($0, limit: 2000) }
            ?? record.data.flatMap { Base64.decoded($0.utf8) }.map { HexText.text($0.prefix(256)) } ?? ""
        return skipped + ["\(mark) \(size) \(content)"]
    }
}
