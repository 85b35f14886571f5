import ArgumentParser
import BackgroundTransfers
import CommandLineText
import Foundation
import StreamTransport
import Synchronization

/// `sluice transfers`: shows and steers the transfers of the user's background sessions.
struct TransfersCommand: ParsableCommand {
    private static let exitCodes = ExitStatus.help([
        .success: nil, .usage: nil,
        .notFound: "there is no such transfer",
        .unavailable: "the daemon cannot be started or reached",
        .systemError: "system error, like too many open files",
        .inputOrOutput: nil,
    ])
    static let configuration = CommandConfiguration(
        commandName: "transfers",
        abstract: "List, follow, suspend, resume or cancel transfers of background sessions.",
        discussion: """
            Prints a table of the transfers that the daemon of background sessions carries out for the user's programs: session, \
            task, kind, state, bytes, URL and description. With SESSION and TASK, changes one of them: a cancelled one fails in its \
            program with URLError.cancelled and the reason userForceQuitApplication.

            With --json, prints one line for each transfer. With --follow, prints each change until Ctrl-C.

            EXAMPLES
              sluice transfers
              sluice transfers --follow --json
              sluice transfers --suspend org.example.app 3
              sluice transfers --cancel org.example.app 3

            \(Self.exitCodes)
            """)

    @Argument(help: .value("SESSION", "Identifier of the session of the transfer to change."))
    var session: String?

    @Argument(help: .value("TASK", "Identifier of its task."))
    var task: Int?

    @Flag(help: "Suspend the transfer.")
    var suspend = false

    @Flag(help: "Resume the transfer.")
    var resume = false

    @Flag(help: "Cancel the transfer.")
    var cancel = false

    @Flag(name: .shortAndLong, help: "Print each change until Ctrl-C.")
    var follow = false

    @Flag(help: "Print one line of JSON for each transfer.")
    var json = false

    func validate() throws {
        let verbs = [self.suspend, self.resume, self.cancel].count { $0 }
        guard verbs <= 1 else { throw ValidationError("expected one of --suspend, --resume and --cancel") }
        guard (verbs == 1) == (self.task != nil), self.task != nil || self.session == nil else {
            throw ValidationError("expected --suspend, --resume or --cancel together with SESSION and TASK")
        }
        guard verbs == 0 || !self.follow else { throw ValidationError("--follow changes no transfer") }
    }

    func run() throws {
        let view = TransferView(json: self.json, follows: self.follow)
        let link: DaemonLink
        do throws(SystemError) {
            link = DaemonLink(observing: .current, on: try LoopGroup(count: 1).loops[0]) {
                DaemonStarter.start(Self.executable, folders: .current)
            }
        } catch {
            throw self.fail("\(error)", .systemError)
        }
        if let failure = link.attach(within: .seconds(10), { view.received($0) }) {
            throw self.fail(failure.text, .unavailable)
        }
        if let session, let task {
            let verb: ControlVerb = self.suspend ? .suspend : self.resume ? .resume : .cancel
            return try self.check(link.steer(verb, task, of: session))
        }
        let loss: String
        do throws(ConnectFailure) {
            try view.printList()
            guard self.follow else { return }
            loss = try view.waitForLoss()
        } catch {
            throw self.fail(error.line, .inputOrOutput)
        }
        throw self.fail(loss, .unavailable)
    }

    private static var executable: String? {
        try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
    }

    private func fail(_ text: String, _ status: ExitStatus) -> ExitCode {
        ErrorReporter.print("sluice: \(TerminalText.singleLine(text, limit: 600))")
        return status.code
    }

    private func check(_ result: Result<RequestOutcome, DaemonLinkFailure>) throws {
        switch result {
        case .success(.done): break
        case .success(.unknownTransfer): throw self.fail("there is no such transfer", .notFound)
        case .success(.refused(let error)): throw self.fail(error.text, .unavailable)
        case .failure(let failure): throw self.fail(failure.text, .unavailable)
        }
    }
}

/// Collects the daemon's list, and then prints changes. Thread-safe.
private final class TransferView: Sendable {
    private struct State {
        var transfers: [TransferLine] = []
        var isListed = false
        var failure: DaemonLinkFailure?
        /// Why a change could not be printed; nothing is printed any more.
        var outputFailure: ConnectFailure?
    }

    private let json: Bool
    private let follows: Bool
    private let state = Mutex(State())
    private let lost = DispatchSemaphore(value: 0)

    init(json: Bool, follows: Bool) {
        self.json = json
        self.follows = follows
    }

    func received(_ event: DaemonLink.Event) {
        switch event {
        case .reattached: break
        case .lost(let failure):
            self.state.withLock { $0.failure = failure }
            self.lost.signal()
        case .message(.transfer(let session, let transfer)):
            self.show(TransferLine(session, transfer))
        case .message(.progress(let session, let task, let counts)):
            self.show(TransferLine(session: session, task: task, state: "running", counts: counts))
        case .message(.removed(let session, let task, let error)):
            self.show(
                TransferLine(session: session, task: task, state: error == nil ? "finished" : "failed", error: error))
        case .message: break
        }
    }

    private func show(_ line: TransferLine) {
        let prints = self.state.withLock { state in
            if !state.isListed { state.transfers.append(line) }
            return state.isListed && self.follows && state.outputFailure == nil
        }
        guard prints else { return }
        do throws(ConnectFailure) {
            try self.print([line])
        } catch {
            self.state.withLock { $0.outputFailure = error }
            self.lost.signal()
        }
    }

    func printList() throws(ConnectFailure) {
        let transfers = self.state.withLock { state in
            state.isListed = true
            return state.transfers
        }
        if self.json { return try self.print(transfers) }
        var table = TextTable([
            .init("SESSION", minimumWidth: 12), .init("TASK", rightAligned: true), .init("KIND", dropOrder: 2),
            .init("STATE"), .init("BYTES", rightAligned: true), .init("OF", rightAligned: true),
            .init("URL", minimumWidth: 16, dropOrder: 1), .init("DESCRIPTION", minimumWidth: 8, dropOrder: 3),
        ])
        for line in transfers { table.add(line.cells) }
        let columns = Terminal.isOutputTerminal ? Terminal.columns : nil
        try ProcessOutput.print(
            table.lines(cells: columns, colors: Terminal.wantsColors).joined(separator: "\n") + "\n")
    }

    private func print(_ lines: [TransferLine]) throws(ConnectFailure) {
        for line in lines { try ProcessOutput.print((self.json ? line.json : line.text) + "\n") }
    }

    /// - Returns: why there is no daemon any more.
    /// - Throws: `ConnectFailure` if a change cannot be printed.
    func waitForLoss() throws(ConnectFailure) -> String {
        self.lost.wait()
        let (failure, outputFailure) = self.state.withLock { ($0.failure, $0.outputFailure) }
        if let outputFailure { throw outputFailure }
        return failure?.text ?? ""
    }
}

/// One transfer as it is printed.
private struct TransferLine: Encodable {
    let session: String
    let task: Int
    var kind: String?
    let state: String
    var counts: TransferCounts?
    var url: String?
    var label: String?
    /// Attempts that failed in a row.
    var failures: Int?
    /// When the next attempt begins.
    var until: Date?
    var error: TransferError?

    init(session: String, task: Int, state: String, counts: TransferCounts? = nil, error: TransferError? = nil) {
        self.session = session
        self.task = task
        self.state = state
        self.counts = counts
        self.error = error
    }

    init(_ session: String, _ transfer: TransferRecord) {
        var state: String
        var until: Date?
        switch transfer.phase {
        case .waiting(let date):
            state = "waiting"
            until = [date, transfer.attributes.earliestBegin].compactMap(\.self).max()
        case .asksForRequest, .asksForCredential: state = "asking"
        case .running: state = "running"
        }
        if transfer.isSuspended { state = "suspended" }
        self.init(session: session, task: transfer.identifier, state: state, counts: transfer.counts)
        self.kind = transfer.kind.rawValue
        self.url = transfer.currentRequest.url
        self.label = transfer.attributes.label
        self.failures = transfer.failures
        self.until = until
    }

    private var done: Int64 { (self.counts?.sent ?? 0) + (self.counts?.received ?? 0) }
    private var total: Int64? {
        let total = self.kind == "upload" ? self.counts?.totalToSend : self.counts?.totalToReceive
        return total.flatMap { $0 > 0 ? $0 : nil }
    }

    var cells: [TextTable.Cell] {
        [
            .init(self.session), .init("\(self.task)"), .init(self.kind), .init(self.state),
            .init(QuantityText.bytes(Int(clamping: self.done))),
            .init(self.total.map { QuantityText.bytes(Int(clamping: $0)) }), .init(self.url), .init(self.label),
        ]
    }

    var text: String {
        let words = [
            self.session, "\(self.task)", self.state,
            self.counts.map { _ in QuantityText.bytes(Int(clamping: self.done)) },
            self.error?.text ?? self.url,
        ]
        return TerminalText.singleLine(words.compactMap(\.self).joined(separator: " "), limit: 1000)
    }

    var json: String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        encoder.dateEncodingStrategy = .iso8601
        return (try? encoder.encode(self)).map { String(decoding: $0, as: UTF8.self) } ?? "{}"
    }
}
