import ArgumentParser
import CommandLineText
import ControlAPI
import ControlClient
import Foundation

/// `sluice put`: the gateway sends a file to a URL.
struct PutCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "put",
        abstract: "Let a running gateway send a file to a URL, and watch it.",
        discussion: """
            FILE is on this machine, and goes through the gateway as fast as the server takes it; with --remote it is one of the \
            gateway's own machine, below a directory of control.transfers.directories. --output takes what the server answers.

            A progress bar is on standard error, where that is a terminal. Ctrl-C cancels the transfer: HTTP sends a file from its \
            beginning again, which the same command does, and --resume for a --remote file. --resume also watches one that still \
            runs.

            A status of 400 and above is a failure, with exit code 80.

            EXAMPLES
              sluice put picture.png https://example.org/upload/picture.png
              sluice put form.json https://example.org/forms -X POST -o answer.json \\
                -H 'Content-Type: application/json'
              sluice put --remote /srv/files/big.iso https://example.org/big.iso

            \(ControlHelp.exitCodes)
            """)

    @Argument(help: ArgumentHelp("The file.", valueName: "FILE"), completion: .file())
    var file: String?

    @Argument(help: ArgumentHelp("Where to send it, http:// or https://.", valueName: "URL"))
    var url: String?

    @Flag(help: "FILE is on the gateway's machine, its whole path.")
    var remote = false

    @Option(
        name: [.customShort("X"), .long],
        help: ArgumentHelp("Method of the request. (default: PUT)", valueName: "method"))
    var method: String?

    @Option(
        name: .shortAndLong,
        help: ArgumentHelp("File here, for what the server answers; - is standard output.", valueName: "file"),
        completion: .file())
    var output: String?

    @Option(help: ArgumentHelp("Send the --remote file of this transfer again, or watch it.", valueName: "ID"))
    var resume: String?

    @OptionGroup(title: "Transfer")
    var transfer: TransferOptions

    @OptionGroup(title: "Gateway and output")
    var control: ControlOptions

    func run() async throws {
        try await self.control.run(reading: self.plan) { desk, plan in
            let interruption = self.transfer.background ? nil : try Interruption()
            let answer = try await TransferBeginning(desk: desk, isFresh: false).begin(plan)
            let begun = try answer.decoded(Transfer.self)
            guard let interruption else { return try await desk.show(answer, as: Transfer.self) { [$0.id] } }
            let isFromHere = self.resume == nil && !self.remote
            let upload = isFromHere ? BodyUpload(self.file ?? "", to: begun.id, desk.session) : nil
            let watch = TransferWatch(desk: desk, id: begun.id, upload: upload)
            try await TransferRun(desk: desk, watch: watch, output: self.output).untilEnd(interruption)
        }
    }

    private func plan(_ reader: inout OptionReader) throws -> TransferBeginning.Plan? {
        if self.control.json, self.output == TransferRun.standardOutput {
            reader.note("--output", expected: "a file where there is --json", found: "standard output")
        }
        if let resume {
            if self.file != nil { reader.note("--resume", expected: "no FILE beside it", found: "one") }
            return .goOn(resume)
        }
        guard let file, let url else {
            reader.note("FILE URL", expected: "what to send and where, or --resume", found: "less")
            return nil
        }
        if self.transfer.background, !self.remote {
            reader.note("--background", expected: "--remote beside it", found: "a file that is sent from here")
        }
        if !self.remote { try Self.check(file) }
        var body = TransferRequest(url: url, method: self.method)
        if self.remote { body.file = file } else { body.streamed = true }
        try self.transfer.apply(to: &body, &reader)
        return .begin(body)
    }

    private static func check(_ file: String) throws(UnusableFiles) {
        var isDirectory: ObjCBool = false
        let exists = FileManager.default.fileExists(atPath: file, isDirectory: &isDirectory)
        let reason =
            !exists
            ? "there is no such file"
            : isDirectory.boolValue
                ? "it is a directory"
                : !FileManager.default.isReadableFile(atPath: file) ? "it may not be read" : nil
        if let reason { throw UnusableFiles("sluice: \(file): \(reason)") }
    }
}
