import ArgumentParser
import CommandLineText
import ControlAPI
import ControlClient
import Foundation

/// `sluice get`: the gateway loads a URL.
struct GetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "get",
        abstract: "Let a running gateway load a URL, and watch it.",
        discussion: """
            With --to the gateway writes a file of its own machine, below a directory of control.transfers; else it keeps the content \
            in memory, as much as its configuration allows, and it is written here: to --output, or to standard output. Ctrl-C \
            cancels the transfer; where the server lets it be resumed, what came is kept, and --resume goes on with it.

            EXAMPLES
              sluice get https://example.org/ > page.html
              sluice get https://example.org/big.iso --to /srv/files/big.iso
              sluice get --resume 7

            \(ControlHelp.exitCodes)
            """)

    @Argument(help: ArgumentHelp("What to load.", valueName: "URL"))
    var url: String?

    @Option(help: ArgumentHelp("File on the gateway's machine.", valueName: "path"))
    var to: String?

    @Flag(help: "Replace the file that is there.")
    var overwrite = false

    @Option(name: .shortAndLong, help: ArgumentHelp("File here, for the content.", valueName: "file"))
    var output: String?

    @Option(help: ArgumentHelp("Go on with a transfer that ended too early.", valueName: "ID"))
    var resume: String?

    @OptionGroup(title: "Transfer")
    var transfer: TransferOptions

    @OptionGroup(title: "Gateway and output")
    var control: ControlOptions

    func run() async throws {
        try await self.control.run(reading: self.request) { desk, request in
            let answer = try await desk.session.send(request)
            let begun = try answer.decoded(Transfer.self)
            if self.transfer.background { return try await desk.show(answer, as: Transfer.self) { [$0.id] } }
            let one = try await TransferWatch(desk: desk, id: begun.id, command: "sluice get").untilEnd()
            try await self.finish(one, desk)
        }
    }

    private func request(_ reader: inout OptionReader) throws -> ControlRequest? {
        if let resume {
            if self.url != nil { reader.note("--resume", expected: "no URL beside it", found: "one") }
            return try ControlRequest(.post, TransferText.path(resume) + ":restart", json: TransferRestart())
        }
        guard let url else {
            reader.note("URL", expected: "what to load, or --resume", found: "none")
            return nil
        }
        var body = TransferRequest(url: url)
        body.destination = self.to
        body.overwrite = self.overwrite ? true : nil
        self.transfer.apply(to: &body, &reader)
        return try ControlRequest(.post, "/v1/transfers", json: body)
    }

    private func finish(_ one: Transfer, _ desk: ControlDesk) async throws {
        if desk.printsJSON {
            let shown = try await desk.session.send(ControlRequest(.get, TransferText.path(one.id)))
            try await desk.print(json: shown.body)
        }
        if self.output != nil || one.destination == nil && !desk.printsJSON {
            try await ContentFetch(desk: desk, id: one.id).write(to: self.output)
        }
        if one.destination != nil, !desk.printsJSON {
            try await desk.print(TerminalText.line(TransferText.summary(one), limit: 600))
        }
    }
}
