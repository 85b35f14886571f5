import ArgumentParser
import CommandLineText
import ControlAPI
import ControlClient
import Foundation
import GatewayConfiguration
import GatewayCore

/// `sluice tap`: a copy of what a connection carries.
struct TapCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "tap",
        abstract: "Watch a copy of what a connection carries.",
        discussion: """
            A line for each message or piece, until the connection ends or Ctrl-C: < was received from the peer, > sent to it. Who \
            watches too slowly misses some, which is told; the connection itself is never slowed.

            EXAMPLES
              sluice tap 17
              sluice tap 17 --sample 100 --max 64B --json

            \(ControlHelp.exitCodes)
            """)

    @Argument(help: ArgumentHelp("The connection.", valueName: "ID"))
    var id: String

    @Option(help: ArgumentHelp("Only every so many-th message. (default: 1)", valueName: "number"))
    var sample: String?

    @Option(help: ArgumentHelp("Of each, at most so much, to 64KiB. (default: 4KiB)", valueName: "size"))
    var max: String?

    @OptionGroup(title: "Gateway and output")
    var control: ControlOptions

    func run() async throws {
        try await self.control.run(reading: self.request) { desk, request in
            let (headers, body) = try await desk.session.open(request, accept: "text/event-stream")
            guard headers.mediaType == "text/event-stream" else {
                throw ControlFailure(.nonsense, "the answer is no stream of events")
            }
            var parser = EventStreamParser()
            while let bytes = try await body.next() {
                for event in try parser.events(bytes) {
                    try await self.show(event, desk)
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
            .get, ConnectionPath.one(self.id) + "/tap", parameters.compactMap(\.self))
        request.patience = .seconds(3600)
        return request
    }

    private func show(_ event: ServerSentEvent, _ desk: CommandContext) async throws {
        if desk.printsJSON { return try await desk.print(json: Data(event.data)) }
        guard let record = try? JSONDecoder().decode(TapRecord.self, from: Data(event.data)) else {
            throw ControlFailure(.nonsense, "this is no piece of a tap")
        }
        try await desk.print(Self.lines(record))
    }

    private static func lines(_ record: TapRecord) -> [String] {
        let skipped = record.skipped > 0 ? ["* \(record.skipped) left out"] : []
        guard let way = record.way else { return skipped }
        let mark = way == "received" ? "<" : ">"
        let size = "(\(record.content ?? "?"), \(record.sizeBytes ?? 0) bytes)"
        let content =
            record.text.map { TerminalText.line($0, limit: 2000) }
            ?? record.data.flatMap { Data(base64Encoded: $0) }.map { HexText.text($0.prefix(256)) } ?? ""
        return skipped + ["\(mark) \(size) \(content)"]
    }
}
