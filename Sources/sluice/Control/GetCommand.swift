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
            The gateway loads it, from where it is. With --to it writes a file of its own machine, below a directory of \
            control.transfers.directories. Else it keeps the content in memory, as much as control.transfers.max-body allows, and \
            the content is written here: to --output, or to standard output.

            A progress bar is on standard error, where that is a terminal. Ctrl-C cancels the transfer. With --to, what came is kept \
            if the server lets it be gone on with: the same command again, or --resume with the id that it told, does that. --resume \
            also watches a transfer that still runs, and fetches what one that is finished received.

            A status of 400 and above is a failure, with exit code 80; redirects are followed.

            EXAMPLES
              sluice get https://example.org/ > page.html
              sluice get https://example.org/picture.png -o picture.png
              sluice get https://example.org/big.iso --to /srv/files/big.iso
              sluice get --resume 7

            \(ControlHelp.exitCodes)
            """)

    @Argument(help: ArgumentHelp("What to load, http:// or https://.", valueName: "URL"))
    var url: String?

    @Option(help: ArgumentHelp("File on the gateway's machine, its whole path.", valueName: "path"))
    var to: String?

    @Flag(help: "Replace the file that is there; with --to.")
    var overwrite = false

    @Option(
        name: .shortAndLong, help: ArgumentHelp("File here, for the content; - is standard output.", valueName: "file"),
        completion: .file())
    var output: String?

    @Option(help: ArgumentHelp("Go on with this transfer.", valueName: "ID"))
    var resume: String?

    @Flag(help: "Begin anew, even where an earlier transfer could be gone on with.")
    var fresh = false

    @OptionGroup(title: "Transfer")
    var transfer: TransferOptions

    @OptionGroup(title: "Gateway and output")
    var control: ControlOptions

    func run() async throws {
        try await self.control.run(reading: self.plan) { desk, plan in
            let interruption = self.transfer.background ? nil : try Interruption()
            let answer = try await TransferBeginning(desk: desk, isFresh: self.fresh).begin(plan)
            let begun = try answer.decoded(Transfer.self)
            guard let interruption else { return try await desk.show(answer, as: Transfer.self) { [$0.id] } }
            let isShown = begun.destination == nil && !desk.printsJSON
            let run = TransferRun(
                desk: desk, watch: TransferWatch(desk: desk, id: begun.id, upload: nil),
                output: self.output ?? (isShown ? TransferRun.standardOutput : nil))
            try await run.untilEnd(interruption)
        }
    }

    private func plan(_ reader: inout OptionReader) throws -> TransferBeginning.Plan? {
        if self.control.json, self.output == TransferRun.standardOutput {
            reader.note("--output", expected: "a file where there is --json", found: "standard output")
        }
        if self.transfer.background, self.output != nil {
            reader.note(
                "--output", expected: "none with --background", found: "one",
                remedy: "'sluice get --resume ID -o FILE' fetches it later")
        }
        if let resume {
            if self.url != nil || self.to != nil {
                reader.note("--resume", expected: "neither URL nor --to beside it", found: "one of them")
            }
            return .goOn(resume)
        }
        guard let url else {
            reader.note("URL", expected: "what to load, or --resume", found: "none")
            return nil
        }
        if self.overwrite, self.to == nil {
            reader.note("--overwrite", expected: "--to beside it", found: "none")
        }
        var body = TransferRequest(url: url)
        body.destination = self.to
        body.overwrite = self.overwrite ? true : nil
        try self.transfer.apply(to: &body, &reader)
        return .begin(body)
    }
}
