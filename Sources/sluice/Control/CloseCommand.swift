import ArgumentParser
import CommandLineText
import ControlAPI
import ControlClient
import GatewayCore
import WebSocketProtocol

/// `sluice close`: ends connections, or one direction of a stream.
struct CloseCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "close",
        abstract: "End a connection in order, at once, or in one direction.",
        discussion: """
            A WebSocket is closed with 1000, or the code that --code says; a stream sends what waits, and its end. What has not ended \
            after 5s is told as closing. Of several connections each is tried; the exit code is that of the first that failed.

            EXAMPLES
              sluice close 17 --code 4001 --reason 'maintenance'
              sluice close 18 19 20 --abort
              sluice close 21 --write

            \(ControlHelp.exitCodes)
            """)

    @Argument(help: ArgumentHelp("The connections.", valueName: "ID"))
    var ids: [String]

    @Option(
        help: ArgumentHelp("Close code: 1000 to 1003, 1007 to 1014 or 3000 to 4999. (default: 1000)", valueName: "code")
    )
    var code: String?

    @Option(help: ArgumentHelp("Close reason, at most 123 bytes.", valueName: "text"))
    var reason: String?

    @Flag(help: "At once, with a reset; what waits is lost.")
    var abort = false

    @Flag(help: "Of a stream: nothing more is read.")
    var read = false

    @Flag(help: "Of a stream: our end is sent behind what waits, and nothing more.")
    var write = false

    @OptionGroup(title: "Gateway and output")
    var control: ControlOptions

    func run() async throws {
        try await self.control.run(reading: self.parameters) { desk, parameters in
            var first: ControlFailure?
            for id in self.ids {
                do {
                    try await self.close(id, parameters, desk)
                } catch let failure as ControlFailure where self.ids.count > 1 && failure.kind != .noConnection {
                    try await desk.tell(failure)
                    first = first ?? failure
                }
            }
            if let first { throw first.exitCode }
        }
    }

    private func parameters(_ reader: inout OptionReader) -> [ControlRequest.Parameter]? {
        let isWhole = !self.read && !self.write
        let code = reader.value("--code", self.code, ValueSyntax<CloseCode>.closeCode)
        let reason = reader.value("--reason", self.reason, ValueSyntax<String>.closeReason)
        let says = self.code != nil || self.reason != nil
        if says && (self.abort || !isWhole) {
            reader.note(
                self.code == nil ? "--reason" : "--code", expected: "the end of a whole connection, in order",
                found: self.abort ? "--abort" : "--read or --write")
        }
        if self.abort, !isWhole { reader.note("--abort", expected: "no --read and no --write", found: "one") }
        return [
            code.map { ControlRequest.Parameter("code", "\($0.rawValue)") },
            reason.map { ControlRequest.Parameter("reason", $0) },
            self.abort ? ControlRequest.Parameter("abort", "true") : nil,
        ].compactMap(\.self)
    }

    private func close(_ id: String, _ parameters: [ControlRequest.Parameter], _ desk: ControlDesk) async throws {
        guard self.read || self.write else {
            let answer = try await desk.session.send(ControlRequest(.delete, ConnectionPath.one(id), parameters))
            return try await desk.show(answer, as: Connection.self) { one in
                [TerminalText.line("\(one.id ?? id) \(one.ending)", limit: 400)]
            }
        }
        for (verb, isWanted, word) in [("closeRead", self.read, "reading"), ("closeWrite", self.write, "writing")]
        where isWanted {
            let answer = try await desk.session.send(ControlRequest(.post, ConnectionPath.verb(verb, id)))
            try await desk.show(answer, as: Connection.self) { one in
                [TerminalText.line("\(one.id ?? id) closed for \(word)")]
            }
        }
    }
}
