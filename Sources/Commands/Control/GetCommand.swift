import ArgumentParser
import CommandLineText
import ControlAPI
import ControlClient
import Foundation
import GatewayConfiguration
import StreamTransport

/// `sluice get`: lets the gateway download a URL.
struct GetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "get",
        abstract: "Let a running gateway download a URL, and follow the progress.",
        discussion: """
            The gateway sends the request from its own machine. With --to it writes the content to a file there, below a directory \
            of control.transfers.directories. Otherwise it keeps the content in memory, up to control.transfers.max-body, and \
            the content is written here, to --output or standard output.

            If standard error is a terminal, it shows a progress bar. Ctrl-C cancels the transfer. With --to, a partial download is \
            kept if the server supports resuming: run the same command again, or use --resume with the printed ID. --resume \
            also follows a running transfer, and fetches the content of a finished one.

            Redirects are followed. A status of 400 or above is a failure with exit code 80.

            EXAMPLES
              sluice get https://example.org/ > page.html
              sluice get https://example.org/picture.png -o picture.png
              sluice get https://example.org/big.iso --to /srv/files/big.iso
              sluice get --resume 7

            \(ControlHelp.exitCodes)
            """)

    @Argument(help: .value("URL", "URL to download, http:// or https://."))
    var url: String?

    @Option(help: .value("path", "File on the gateway's machine, as an absolute path."))
    var to: String?

    @Flag(help: "With --to: overwrite an existing file.")
    var overwrite = false

    @Option(
        name: .shortAndLong,
        help: .value("file", "Local file for the content; - is standard output."), completion: .file())
    var output: String?

    @Option(help: .value("ID", "Resume or follow this transfer."))
    var resume: String?

    @Flag(help: "Start from the beginning, even if an earlier transfer can be resumed.")
    var fresh = false

    @OptionGroup(title: "Transfer")
    private var transfer: TransferOptions

    @OptionGroup(title: "Gateway and output")
    var control: ControlOptions

    func run() async throws {
        try await self.control.run(reading: self.plan) { context, plan in
            let interruption = self.transfer.background ? nil : try Interruption()
            let answer = try await TransferStart(context: context, isFresh: self.fresh).begin(plan)
            let begun = try answer.decoded(Transfer.self)
            guard let interruption else { return try await context.show(answer, as: Transfer.self) { [$0.id] } }
            let isShown = begun.destination == nil && !context.printsJSON
            let run = TransferRun(
                context: context, watch: TransferWatch(context: context, id: begun.id, upload: nil),
                output: self.output ?? (isShown ? TransferRun.standardOutput : nil))
            try await run.run(interruption)
        }
    }

    private func plan(_ reader: inout OptionReader) throws -> TransferStart.Plan? {
        if self.control.json, self.output == TransferRun.standardOutput {
            reader.reject("--output", "cannot be standard output with --json")
        }
        if self.transfer.background, self.output != nil {
            reader.reject(
                "--output", "cannot be combined with --background",
                remedy: "fetch the content later with 'sluice get --resume ID -o FILE'")
        }
        if let resume {
            if self.url != nil || self.to != nil {
                reader.reject("--resume", "cannot be combined with URL or --to")
            }
            self.transfer.rejectForResumption(self.overwrite ? ["--overwrite"] : [], &reader)
            return .resume(resume)
        }
        guard let url else {
            reader.reject("sluice get", "expected URL, or --resume ID")
            return nil
        }
        if self.overwrite, self.to == nil {
            reader.reject("--overwrite", "requires --to")
        }
        if self.fresh, self.to == nil {
            reader.reject("--fresh", "requires --to or --resume")
        }
        var body = TransferRequest { $0.url = url }
        body.destination = self.to
        body.overwrite = self.overwrite ? true : nil
        try self.transfer.apply(to: &body, &reader)
        return .begin(body)
    }
}

/// `sluice put`: lets the gateway upload a file to a URL.
struct PutCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "put",
        abstract: "Let a running gateway upload a file to a URL, and follow the progress.",
        discussion: """
            FILE is a local file, streamed through the gateway as fast as the server reads it. With --remote it is a file on the \
            gateway's machine, below a directory of control.transfers.directories. --output writes the server's response.

            If standard error is a terminal, it shows a progress bar. Ctrl-C cancels the transfer. An upload always restarts from \
            the beginning: run the same command again, or use --resume for a --remote file. --resume also follows a running \
            transfer.

            A status of 400 or above is a failure with exit code 80.

            EXAMPLES
              sluice put picture.png https://example.org/upload/picture.png
              sluice put form.json https://example.org/forms -X POST -o answer.json \\
                -H 'Content-Type: application/json'
              sluice put --remote /srv/files/big.iso https://example.org/big.iso

            \(ControlHelp.exitCodes)
            """)

    @Argument(help: .value("FILE", "File to upload."), completion: .file())
    var file: String?

    @Argument(help: .value("URL", "URL to upload to, http:// or https://."))
    var url: String?

    @Flag(help: "FILE is an absolute path on the gateway's machine.")
    var remote = false

    @Option(name: [.customShort("X"), .long], help: .value("method", "Request method. (default: PUT)"))
    var method: String?

    @Option(
        name: .shortAndLong,
        help: .value("file", "Local file for the server's response; - is standard output."), completion: .file())
    var output: String?

    @Option(help: .value("ID", "Restart this transfer of a --remote file, or follow it."))
    var resume: String?

    @OptionGroup(title: "Transfer")
    private var transfer: TransferOptions

    @OptionGroup(title: "Gateway and output")
    var control: ControlOptions

    func run() async throws {
        try await self.control.run(reading: self.plan) { context, plan in
            let interruption = self.transfer.background ? nil : try Interruption()
            let answer = try await TransferStart(context: context, isFresh: false).begin(plan)
            let begun = try answer.decoded(Transfer.self)
            guard let interruption else { return try await context.show(answer, as: Transfer.self) { [$0.id] } }
            let isFromHere = self.resume == nil && !self.remote
            let upload = isFromHere ? BodyUpload(self.file ?? "", to: begun.id, context.session) : nil
            let watch = TransferWatch(context: context, id: begun.id, upload: upload)
            try await TransferRun(context: context, watch: watch, output: self.output).run(interruption)
        }
    }

    private func plan(_ reader: inout OptionReader) throws -> TransferStart.Plan? {
        if self.control.json, self.output == TransferRun.standardOutput {
            reader.reject("--output", "cannot be standard output with --json")
        }
        if self.transfer.background, self.output != nil {
            reader.reject("--output", "cannot be combined with --background")
        }
        if let resume {
            if self.file != nil { reader.reject("--resume", "cannot be combined with FILE") }
            self.transfer.rejectForResumption(
                (self.remote ? ["--remote"] : []) + (self.method == nil ? [] : ["--method"]), &reader)
            return .resume(resume)
        }
        guard let file, let url else {
            reader.reject("sluice put", "expected FILE and URL, or --resume ID")
            return nil
        }
        if self.transfer.background, !self.remote {
            reader.reject("--background", "requires --remote")
        }
        if !self.remote { try Self.check(file) }
        var body = TransferRequest { ($0.url, $0.method) = (url, self.method) }
        if self.remote { body.file = file } else { body.streamed = true }
        try self.transfer.apply(to: &body, &reader)
        return .begin(body)
    }

    private static func check(_ file: String) throws(UnusableFiles) {
        var status = stat()
        let exists = stat(file, &status) == 0
        let reason: String? =
            switch status.st_mode & S_IFMT {
            case _ where !exists: errno == ENOENT ? "no such file" : "\(SystemError(errno))"
            case S_IFDIR: "is a directory"
            case S_IFREG: FileManager.default.isReadableFile(atPath: file) ? nil : "permission denied"
            // Opening a pipe would block, and a device has no end.
            default: "is not a regular file"
            }
        if let reason { throw UnusableFiles("sluice: \(file): \(reason)") }
    }
}

/// Options common to `get` and `put`.
private struct TransferOptions: ParsableArguments {
    @Option(
        name: [.customShort("H"), .long], parsing: .unconditionalSingleValue,
        help: .value("Name: value", "Request header field. Repeatable."))
    var header: [String] = []

    @Option(help: .value("name", "Name of an entry of control.transfers.credentials to authenticate with."))
    var credential: String?

    @Flag(name: [.customShort("k"), .long], help: "Do not verify the server's certificate. For tests only: insecure.")
    var insecure = false

    @Option(
        help: .value("file", "CA certificates to trust instead of those of the gateway's system, PEM."),
        completion: .file())
    var ca: String?

    @Option(help: .value("duration", "Timeout without any data sent or received. (default: 60s)"))
    var idleTimeout: String?

    @Option(help: .value("duration", "Timeout for the whole transfer. (default: 7d)"))
    var timeout: String?

    @OptionGroup
    var annotations: AnnotationOptions

    @Flag(help: "Start the transfer, print its ID and exit.")
    var background = false

    /// A resumed transfer keeps its request.
    /// - Parameter options: further ones that were given.
    func rejectForResumption(_ options: [String], _ reader: inout OptionReader) {
        let given = [
            ("--header", !self.header.isEmpty), ("--credential", self.credential != nil),
            ("--insecure", self.insecure), ("--ca", self.ca != nil), ("--idle-timeout", self.idleTimeout != nil),
            ("--timeout", self.timeout != nil), ("--description", self.annotations.description != nil),
            ("--priority", self.annotations.priority != nil), ("--label", !self.annotations.label.isEmpty),
        ]
        for option in options + given.filter(\.1).map(\.0) {
            reader.reject(option, "cannot be combined with --resume")
        }
    }

    func apply(to request: inout TransferRequest, _ reader: inout OptionReader) throws(UnusableFiles) {
        if self.insecure, self.ca != nil { reader.reject("--insecure", "cannot be combined with --ca") }
        request.headers = reader.headers(self.header)
        request.credential = self.credential
        request.insecure = self.insecure ? true : nil
        let range = Duration.milliseconds(1) ... .seconds(366 * 86_400)
        request.idleTimeoutMs = reader.milliseconds("--idle-timeout", self.idleTimeout, range)
        request.timeoutMs = reader.milliseconds("--timeout", self.timeout, range)
        self.annotations.apply(to: &request, &reader)
        if let ca { request.authorities = try OptionReader.authorities(ca) }
    }
}

/// Starts a transfer for `get` and `put`, or resumes an earlier one.
private struct TransferStart {
    enum Plan {
        case begin(TransferRequest)
        /// With the transfer's ID.
        case resume(String)
    }

    let context: CommandContext
    /// Does not resume an earlier transfer (`--fresh`).
    let isFresh: Bool

    func begin(_ plan: Plan) async throws(ControlFailure) -> ControlResponse {
        switch plan {
        case .resume(let id): return try await self.resume(id)
        case .begin(let request):
            if let one = try await self.findResumable(request) {
                self.context.note("resuming transfer \(one.id); use --fresh to start from the beginning")
                return try await self.restart(one.id, fromBeginning: false)
            }
            return try await self.context.session.send(try ControlRequest(.post, TransferText.all, json: request))
        }
    }

    /// - Returns: the latest resumable transfer of the same URL to the same file.
    private func findResumable(_ request: TransferRequest) async throws(ControlFailure) -> Transfer? {
        guard let destination = request.destination, !self.isFresh else { return nil }
        var found: Transfer?
        var next: ControlRequest? = ControlRequest(
            .get, TransferText.all,
            [.init("kind", "download"), .init("state", "cancelled"), .init("state", "failed"), .init("limit", "1000")])
        while let pageRequest = next {
            let page = try await self.context.session.send(pageRequest, for: TransferPage.self)
            for one in page.items
            where one.canResume && one.url == request.url && one.destination == destination && one.method == "GET" {
                found = one
            }
            next = page.next.map { ControlRequest(.get, $0) }
        }
        return found
    }

    private func resume(_ id: String) async throws(ControlFailure) -> ControlResponse {
        let answer = try await self.context.session.send(ControlRequest(.get, TransferText.path(id)))
        let one = try answer.decoded(Transfer.self)
        switch one.state {
        case "waiting":
            throw ControlFailure(
                .conflict, "transfer \(id) is waiting for its body from another 'sluice put'",
                remedy: "upload the file with 'sluice put FILE URL'")
        case "suspended":
            return try await self.context.session.send(ControlRequest(.post, TransferText.path(id) + ":resume"))
        case "cancelled", "failed":
            // An upload always restarts from the beginning.
            let isUpload = one.kind == "upload"
            guard one.canResume || self.isFresh || isUpload else {
                throw ControlFailure(
                    .conflict, "transfer \(id) cannot be resumed",
                    remedy: "use --resume with --fresh to restart it from the beginning")
            }
            return try await self.restart(id, fromBeginning: self.isFresh || isUpload)
        case "finished" where self.isFresh: return try await self.restart(id, fromBeginning: true)
        default: return answer
        }
    }

    private func restart(_ id: String, fromBeginning: Bool) async throws(ControlFailure) -> ControlResponse {
        let body = TransferRestart { $0.fromBeginning = fromBeginning ? true : nil }
        return try await self.context.session.send(
            try ControlRequest(.post, TransferText.path(id) + ":restart", json: body))
    }
}
