import CommandLineText
import ControlAPI
import ControlClient
import Foundation
import GatewayConfiguration
import Synchronization

/// Runs a transfer of `get` or `put` and writes its content.
struct TransferRun {
    /// The name that selects standard output.
    static let standardOutput = "-"

    let context: CommandContext
    let watch: TransferWatch
    /// Local file for the server's response; `nil` discards it.
    let output: String?

    /// Runs the transfer. Ctrl-C cancels it.
    func run(_ interruption: Interruption) async throws {
        try await interruption.run {
            try await self.perform()
        } cancelled: {
            try await self.cancel()
        }
    }

    private func perform() async throws {
        let snapshot = try await self.waitForEnd()
        let one = snapshot.transfer
        if self.context.printsJSON { try await self.context.print(json: snapshot.answer.body) }
        if let failure = TransferText.failure(one, remedy: Self.remedy(one)) {
            // The response to a rejected upload says why; the error page of a download is not the requested content.
            if one.state == "finished", one.kind == "upload" { try await self.fetchContent() }
            throw failure
        }
        try await self.fetchContent()
        try await self.printSummary(TransferText.summary(one))
    }

    private func waitForEnd() async throws -> TransferWatch.Snapshot {
        do {
            return try await self.watch.untilOver()
        } catch {
            // The transfer cannot continue without the body of this command.
            if let lost = self.watch.upload?.failure, error as? ControlFailure == lost {
                _ = try? await self.watch.cancel()
            }
            throw error
        }
    }

    private func cancel() async throws {
        let snapshot = try await self.watch.cancel()
        let one = snapshot.transfer
        if self.context.printsJSON { try await self.context.print(json: snapshot.answer.body) }
        if one.state != "finished", let failure = TransferText.failure(one, remedy: Self.remedy(one)) { throw failure }
        throw ControlFailure(
            .cancelled, "interrupted, but transfer \(one.id) is finished already",
            remedy: one.kind == "upload" ? "" : "fetch the content with 'sluice get --resume \(one.id)'")
    }

    /// How to resume or restart a failed transfer.
    private static func remedy(_ one: Transfer) -> String {
        if one.error?.code == "content-too-large" { return "use --to to write it to a file on the gateway's machine" }
        if one.kind == "upload" {
            return one.file == nil
                ? "run the same command again to restart it" : "restart it with 'sluice put --resume \(one.id)'"
        }
        if one.canResume { return "resume it with 'sluice get --resume \(one.id)' or the same command" }
        if one.error?.code == "target-not-allowed" { return "allow the target in control.targets" }
        if one.state == "failed" { return one.error?.retryable == true ? "try again" : "" }
        return one.destination == nil
            ? "no content was kept: only downloads with --to can be resumed"
            : "no content was kept: run the same command again to restart it"
    }

    // MARK: Content

    private func printSummary(_ summary: String) async throws {
        let line = TerminalText.singleLine(summary, limit: 600)
        if self.context.printsJSON { return }
        if self.output != Self.standardOutput { return try await self.context.print(line) }
        if Terminal.isErrorTerminal { self.context.note(line) }
    }

    private func fetchContent() async throws {
        guard let output = self.output else { return }
        var request = ControlRequest(.get, TransferText.path(self.watch.id) + "/content")
        request.idleTimeout = .seconds(60)
        let (_, body) = try await self.context.session.open(request, accept: "*/*")
        if output == Self.standardOutput { return try await self.print(body) }
        let file = try OutputFile(output)
        do {
            while let bytes = try await body.next() {
                try Task.checkCancellation()
                try file.write(bytes)
            }
            try file.finish()
        } catch {
            file.discard()
            throw error
        }
    }

    private func print(_ body: ControlBody) async throws {
        var text = UTF8StreamDecoder()
        while let bytes = try await body.next() {
            // Escape sequences from the peer must not reach a terminal.
            let safe = Terminal.isOutputTerminal ? Array(TerminalText.sanitized(text.decode(bytes)).utf8) : bytes
            try await self.context.write(safe)
        }
    }
}

/// Follows a transfer to its end, with a progress bar on a terminal.
struct TransferWatch {
    private static let maximumInterval = Duration.milliseconds(200)
    /// Number of polls for the transfer's own error after uploading its body has failed.
    private static let pollsAfterUploadFailure = 25

    let context: CommandContext
    let id: String
    let upload: BodyUpload?

    private var request: ControlRequest { ControlRequest(.get, TransferText.path(self.id)) }

    /// A transfer and the response that contains it.
    struct Snapshot: Sendable {
        let transfer: Transfer
        let answer: ControlResponse
    }

    /// - Returns: the finished transfer.
    func untilOver() async throws -> Snapshot {
        defer { self.clear() }
        return try await self.follow()
    }

    private func follow() async throws -> Snapshot {
        var rateMeter = RateMeter()
        var interval = Duration.milliseconds(10)
        var polls = Self.pollsAfterUploadFailure
        while true {
            let snapshot = try await self.fetch()
            if snapshot.transfer.endedAt != nil { return snapshot }
            if let failure = self.upload?.failure {
                polls -= 1
                if polls == 0 || snapshot.transfer.state == "waiting" { throw failure }
            }
            let done = TransferText.progress(snapshot.transfer, rate: nil).done
            self.draw(TransferText.progress(snapshot.transfer, rate: rateMeter.update(done, at: .now)))
            try await Task.sleep(for: interval)
            interval = min(interval * 2, Self.maximumInterval)
        }
    }

    /// Cancels the transfer; received data is kept if it can be resumed. Waits at most 5 s for the end.
    func cancel() async throws -> Snapshot {
        do throws(ControlFailure) {
            _ = try await self.context.session.send(ControlRequest(.post, TransferText.path(self.id) + ":cancel"))
        } catch {
            // The transfer is finished already.
            guard error.kind == .conflict else { throw error }
        }
        self.upload?.cancel()
        for _ in 0..<50 {
            let snapshot = try await self.fetch()
            if snapshot.transfer.endedAt != nil { return snapshot }
            try await Task.sleep(for: .milliseconds(100))
        }
        return try await self.fetch()
    }

    private func fetch() async throws(ControlFailure) -> Snapshot {
        let answer = try await self.context.session.send(self.request)
        return Snapshot(transfer: try answer.decoded(Transfer.self), answer: answer)
    }

    /// Smoothed transfer rate.
    private struct RateMeter {
        private var last: (done: UInt64, at: ContinuousClock.Instant)?
        private var rate: Double?

        /// - Returns: bytes per second; `nil` at the first call.
        mutating func update(_ done: UInt64, at now: ContinuousClock.Instant) -> Double? {
            if let last, done >= last.done {
                let new = Double(done - last.done) / max(0.001, last.at.duration(to: now) / .seconds(1))
                self.rate = self.rate.map { $0 * 0.7 + new * 0.3 } ?? new
            }
            self.last = (done, now)
            return self.rate
        }
    }

    // MARK: Progress bar

    private var isShown: Bool { Terminal.isErrorTerminal && !self.context.printsJSON }

    private func draw(_ progress: ProgressLine) {
        guard self.isShown else { return }
        let line = progress.text(cells: max(20, Terminal.columns - 1))
        ProcessOutput.printError("\r\(line)\u{1B}[K")
    }

    private func clear() {
        if self.isShown { ProcessOutput.printError("\r\u{1B}[K") }
    }
}

/// Uploads a local file as the body of a transfer. The gateway reads it as fast as the remote server does.
final class BodyUpload: Sendable {
    private let task: Task<Void, Never>
    private let outcome: Outcome

    private final class Outcome: Sendable {
        let failure = Mutex<ControlFailure?>(nil)
    }

    /// Starts the upload.
    init(_ file: String, to id: String, _ session: ControlSession) {
        var request = ControlRequest(.put, TransferText.path(id) + "/body")
        request.headers["Content-Type"] = "application/octet-stream"
        // The gateway responds when the remote server has read the body.
        request.idleTimeout = .seconds(7 * 86_400)
        let made = request
        let outcome = Outcome()
        self.outcome = outcome
        self.task = Task {
            do throws(ControlFailure) {
                _ = try await session.upload(made, file: URL(fileURLWithPath: file))
            } catch {
                outcome.failure.withLock { $0 = error }
            }
        }
    }

    /// Why the body did not reach the gateway completely. The transfer's state may have a better reason.
    var failure: ControlFailure? { self.outcome.failure.withLock { $0 } }

    func cancel() {
        self.task.cancel()
    }
}

/// A local file for content from the gateway. A regular file is written to `PATH.part` and renamed once it is complete;
/// a device, a pipe or a symbolic link is written directly.
private struct OutputFile {
    private let path: String
    /// Temporary file that is renamed at the end; `nil` if `path` is written directly.
    private let temporaryPath: String?
    private let handle: FileHandle

    init(_ path: String) throws(ConnectFailure) {
        self.path = path
        let kind = (try? FileManager.default.attributesOfItem(atPath: path))?[.type] as? FileAttributeType
        guard kind != .typeDirectory else { throw Self.failure(path, "is a directory") }
        self.temporaryPath = kind == nil || kind == .typeRegular ? path + ".part" : nil
        if let temporaryPath, !FileManager.default.createFile(atPath: temporaryPath, contents: nil) {
            throw Self.failure(temporaryPath, String(cString: strerror(errno)))
        }
        do {
            self.handle = try FileHandle(forWritingTo: URL(fileURLWithPath: self.temporaryPath ?? path))
        } catch {
            throw Self.failure(path, Self.reason(error))
        }
        // Fails for a pipe, which needs no truncation.
        if self.temporaryPath == nil { try? self.handle.truncate(atOffset: 0) }
    }

    func write(_ bytes: [UInt8]) throws(ConnectFailure) {
        do {
            try self.handle.write(contentsOf: bytes)
        } catch {
            throw Self.failure(self.path, Self.reason(error))
        }
    }

    /// Renames the complete file into place.
    func finish() throws(ConnectFailure) {
        do {
            try self.handle.close()
        } catch {
            throw Self.failure(self.path, Self.reason(error))
        }
        guard let temporaryPath, rename(temporaryPath, self.path) != 0 else { return }
        throw Self.failure(self.path, String(cString: strerror(errno)))
    }

    /// Removes the incomplete file.
    func discard() {
        try? self.handle.close()
        if let temporaryPath { try? FileManager.default.removeItem(atPath: temporaryPath) }
    }

    /// The system's own text, which Foundation's is not.
    private static func reason(_ error: any Error) -> String {
        let error = error as NSError
        let cause = error.userInfo[NSUnderlyingErrorKey] as? NSError ?? error
        return cause.domain == NSPOSIXErrorDomain
            ? String(cString: strerror(Int32(cause.code))) : error.localizedDescription
    }

    private static func failure(_ path: String, _ reason: String) -> ConnectFailure {
        ConnectFailure(
            .inputOrOutput, "cannot write \(path): \(reason)", remedy: "choose another file with --output")
    }
}
