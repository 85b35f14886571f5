import ArgumentParser
import CommandLineText
import ControlAPI
import ControlClient
import Foundation
import GatewayConfiguration
import GatewayCore
import StreamTransport
import WebSocketProtocol

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
            let answer = try await TransferStart(desk: desk, isFresh: self.fresh).begin(plan)
            let begun = try answer.decoded(Transfer.self)
            guard let interruption else { return try await desk.show(answer, as: Transfer.self) { [$0.id] } }
            let isShown = begun.destination == nil && !desk.printsJSON
            let run = TransferRun(
                desk: desk, watch: TransferWatch(desk: desk, id: begun.id, upload: nil),
                output: self.output ?? (isShown ? TransferRun.standardOutput : nil))
            try await run.untilEnd(interruption)
        }
    }

    private func plan(_ reader: inout OptionReader) throws -> TransferStart.Plan? {
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
            let answer = try await TransferStart(desk: desk, isFresh: false).begin(plan)
            let begun = try answer.decoded(Transfer.self)
            guard let interruption else { return try await desk.show(answer, as: Transfer.self) { [$0.id] } }
            let isFromHere = self.resume == nil && !self.remote
            let upload = isFromHere ? BodyUpload(self.file ?? "", to: begun.id, desk.session) : nil
            let watch = TransferWatch(desk: desk, id: begun.id, upload: upload)
            try await TransferRun(desk: desk, watch: watch, output: self.output).untilEnd(interruption)
        }
    }

    private func plan(_ reader: inout OptionReader) throws -> TransferStart.Plan? {
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

    private static func check(_ file: String) throws(UnreadableFiles) {
        var isDirectory: ObjCBool = false
        let exists = FileManager.default.fileExists(atPath: file, isDirectory: &isDirectory)
        let reason =
            !exists
            ? "there is no such file"
            : isDirectory.boolValue
                ? "it is a directory"
                : !FileManager.default.isReadableFile(atPath: file) ? "it may not be read" : nil
        if let reason { throw UnreadableFiles("sluice: \(file): \(reason)") }
    }
}

/// Options common to `get` and `put`.
struct TransferOptions: ParsableArguments {
    @Option(
        name: [.customShort("H"), .long], parsing: .unconditionalSingleValue,
        help: ArgumentHelp("Header field of the request. Repeat for several.", valueName: "Name: value"))
    var header: [String] = []

    @Option(help: ArgumentHelp("Entry of control.transfers.credentials to sign in with.", valueName: "name"))
    var credential: String?

    @Flag(name: [.customShort("k"), .long], help: "Take any certificate of the server. Only for tests.")
    var insecure = false

    @Option(
        help: ArgumentHelp("Trust these authorities, PEM, instead of the gateway's system's.", valueName: "file"),
        completion: .file())
    var ca: String?

    @Option(help: ArgumentHelp("For something to arrive or leave. (default: 60s)", valueName: "duration"))
    var idleTimeout: String?

    @Option(help: ArgumentHelp("For the whole. (default: 7d)", valueName: "duration"))
    var timeout: String?

    @OptionGroup
    var notes: NoteOptions

    @Flag(help: "Begin it, print its id, and leave it to itself.")
    var background = false

    func apply(to request: inout TransferRequest, _ reader: inout OptionReader) throws(UnreadableFiles) {
        var headers: [String: String] = [:]
        for text in self.header {
            guard let field = reader.value("--header", text, ValueSyntax<HTTPField>.headerField) else { continue }
            let name = headers.keys.first { $0.lowercased() == field.name.lowercased() } ?? field.name
            headers[name] = headers[name].map { "\($0), \(field.value)" } ?? field.value
        }
        request.headers = headers.isEmpty ? nil : headers
        request.credential = self.credential
        request.insecure = self.insecure ? true : nil
        let span = ValueSyntax<Duration>.duration(.milliseconds(1) ... .seconds(366 * 86_400))
        request.idleTimeoutMs = reader.value("--idle-timeout", self.idleTimeout, span).map { $0 / .milliseconds(1) }
        request.timeoutMs = reader.value("--timeout", self.timeout, span).map { $0 / .milliseconds(1) }
        let notes = self.notes.patch(&reader)
        request.description = notes.description
        request.priority = notes.priority
        request.labels = notes.labels
        guard let ca else { return }
        do throws(SystemError) {
            request.authorities = String(decoding: try SystemFile.read(ca, limit: 512 << 10), as: UTF8.self)
        } catch {
            throw UnreadableFiles("sluice: --ca: \(ca): \(error)")
        }
    }
}

/// How `get` and `put` begin: with a transfer of their own, or with one that was begun before.
struct TransferStart {
    enum Plan {
        case begin(TransferRequest)
        /// By its id.
        case goOn(String)
    }

    let desk: CommandContext
    /// Nothing of earlier attempts is to be used.
    let isFresh: Bool

    func begin(_ plan: Plan) async throws(ControlFailure) -> ControlResponse {
        switch plan {
        case .goOn(let id): return try await self.goOn(id)
        case .begin(let request):
            if let one = try await self.earlier(request) {
                self.desk.note("goes on with transfer \(one.id); --fresh would begin anew")
                return try await self.restart(one.id, fromBeginning: false)
            }
            return try await self.desk.session.send(try ControlRequest(.post, TransferText.all, json: request))
        }
    }

    /// The last one that did the same and can be gone on with.
    private func earlier(_ request: TransferRequest) async throws(ControlFailure) -> Transfer? {
        guard let destination = request.destination, !self.isFresh else { return nil }
        var found: Transfer?
        var next: ControlRequest? = ControlRequest(
            .get, TransferText.all,
            [.init("kind", "download"), .init("state", "cancelled"), .init("state", "failed"), .init("limit", "1000")])
        while let asked = next {
            let page = try await self.desk.session.send(asked, for: TransferPage.self)
            for one in page.items
            where one.canResume && one.url == request.url && one.destination == destination && one.method == "GET" {
                found = one
            }
            next = page.next.map { ControlRequest(.get, $0) }
        }
        return found
    }

    private func goOn(_ id: String) async throws(ControlFailure) -> ControlResponse {
        let answer = try await self.desk.session.send(ControlRequest(.get, TransferText.path(id)))
        let one = try answer.decoded(Transfer.self)
        switch one.state {
        case "waiting":
            throw ControlFailure(
                .conflict, "transfer \(id) waits for its body, which another command brings",
                remedy: "send the file with 'sluice put FILE URL'")
        case "suspended":
            return try await self.desk.session.send(ControlRequest(.post, TransferText.path(id) + ":resume"))
        case "cancelled", "failed":
            // A body is sent from its beginning.
            let isUpload = one.kind == "upload"
            guard one.canResume || self.isFresh || isUpload else {
                throw ControlFailure(
                    .conflict, "nothing of transfer \(id) was kept that could be gone on with",
                    remedy: "--fresh beside --resume begins it anew")
            }
            return try await self.restart(id, fromBeginning: self.isFresh || isUpload)
        case "finished" where self.isFresh: return try await self.restart(id, fromBeginning: true)
        default: return answer
        }
    }

    private func restart(_ id: String, fromBeginning: Bool) async throws(ControlFailure) -> ControlResponse {
        let body = TransferRestart(fromBeginning: fromBeginning ? true : nil)
        return try await self.desk.session.send(
            try ControlRequest(.post, TransferText.path(id) + ":restart", json: body))
    }
}

/// A local file for data from the gateway. A regular file appears once it is complete; a device, a pipe or a link is
/// written to directly.
struct OutputFile {
    private let path: String
    /// Where it is written; `nil`: into `path` itself.
    private let draft: String?
    private let handle: FileHandle

    init(_ path: String) throws(ConnectFailure) {
        self.path = path
        let kind = (try? FileManager.default.attributesOfItem(atPath: path))?[.type] as? FileAttributeType
        guard kind != .typeDirectory else { throw Self.failure(path, "it is a directory") }
        self.draft = kind == nil || kind == .typeRegular ? path + ".part" : nil
        if let draft, !FileManager.default.createFile(atPath: draft, contents: nil) {
            throw Self.failure(draft, String(cString: strerror(errno)))
        }
        do {
            self.handle = try FileHandle(forWritingTo: URL(fileURLWithPath: self.draft ?? path))
        } catch {
            throw Self.failure(path, error.localizedDescription)
        }
        // A file that cannot be truncated, like a pipe, is empty.
        if self.draft == nil { try? self.handle.truncate(atOffset: 0) }
    }

    func write(_ bytes: [UInt8]) throws(ConnectFailure) {
        do {
            try self.handle.write(contentsOf: bytes)
        } catch {
            throw Self.failure(self.path, error.localizedDescription)
        }
    }

    /// It is whole.
    func finish() throws(ConnectFailure) {
        do {
            try self.handle.close()
        } catch {
            throw Self.failure(self.path, error.localizedDescription)
        }
        guard let draft, rename(draft, self.path) != 0 else { return }
        throw Self.failure(self.path, String(cString: strerror(errno)))
    }

    /// There will be no more of it.
    func discard() {
        try? self.handle.close()
        if let draft { try? FileManager.default.removeItem(atPath: draft) }
    }

    private static func failure(_ path: String, _ reason: String) -> ConnectFailure {
        ConnectFailure(
            .inputOrOutput, "\(path) cannot be written: \(reason)", remedy: "name another file with --output")
    }
}
