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
            gateway's own machine, below a directory of control.transfers. What the server answers is written to standard output. \
            Ctrl-C cancels; --resume sends a --remote file again.

            EXAMPLES
              sluice put picture.png https://example.org/upload
              sluice put --remote /srv/files/big.iso https://example.org/big.iso

            \(ControlHelp.exitCodes)
            """)

    @Argument(help: ArgumentHelp("The file.", valueName: "FILE"))
    var file: String?

    @Argument(help: ArgumentHelp("Where to send it.", valueName: "URL"))
    var url: String?

    @Flag(help: "FILE is on the gateway's machine.")
    var remote = false

    @Option(name: .shortAndLong, help: ArgumentHelp("Method of the request. (default: PUT)", valueName: "method"))
    var method: String?

    @Option(help: ArgumentHelp("Send the body of this transfer again.", valueName: "ID"))
    var resume: String?

    @OptionGroup(title: "Transfer")
    var transfer: TransferOptions

    @OptionGroup(title: "Gateway and output")
    var control: ControlOptions

    func run() async throws {
        try await self.control.run(reading: self.request) { desk, request in
            let answer = try await desk.session.send(request)
            let begun = try answer.decoded(Transfer.self)
            let isStreamed = !self.remote && self.resume == nil
            if self.transfer.background, !isStreamed {
                return try await desk.show(answer, as: Transfer.self) { [$0.id] }
            }
            let sending = isStreamed ? try self.sending(begun.id, desk) : nil
            do {
                let one = try await TransferWatch(desk: desk, id: begun.id, command: "sluice put").untilEnd()
                _ = try await sending?.value
                try await self.finish(one, desk)
            } catch {
                sending?.cancel()
                throw error
            }
        }
    }

    private func request(_ reader: inout OptionReader) throws -> ControlRequest? {
        if let resume {
            if self.file != nil { reader.note("--resume", expected: "no FILE beside it", found: "one") }
            let body = TransferRestart(fromBeginning: true)
            return try ControlRequest(.post, TransferText.path(resume) + ":restart", json: body)
        }
        guard let file, let url else {
            reader.note("FILE URL", expected: "what to send and where, or --resume", found: "less")
            return nil
        }
        if self.transfer.background, !self.remote {
            reader.note("--background", expected: "--remote beside it", found: "a file that is sent from here")
        }
        if !self.remote, !FileManager.default.isReadableFile(atPath: file) {
            throw UnusableFiles("sluice: \(file): cannot be read")
        }
        var body = TransferRequest(url: url, method: self.method)
        if self.remote { body.file = file } else { body.streamed = true }
        self.transfer.apply(to: &body, &reader)
        return try ControlRequest(.post, "/v1/transfers", json: body)
    }

    private func sending(_ id: String, _ desk: ControlDesk) throws -> Task<ControlAnswer, any Error> {
        var request = ControlRequest(.put, TransferText.path(id) + "/body")
        request.headers["Content-Type"] = "application/octet-stream"
        request.patience = .seconds(3600)
        let made = request
        let url = URL(fileURLWithPath: self.file ?? "")
        return Task { try await desk.session.upload(made, file: url) }
    }

    private func finish(_ one: Transfer, _ desk: ControlDesk) async throws {
        if desk.printsJSON {
            let shown = try await desk.session.send(ControlRequest(.get, TransferText.path(one.id)))
            return try await desk.print(json: shown.body)
        }
        if (one.contentBytes ?? 0) > 0 { try await ContentFetch(desk: desk, id: one.id).write(to: nil) }
        desk.note(TransferText.summary(one))
    }
}
