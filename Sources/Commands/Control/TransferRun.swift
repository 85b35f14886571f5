import CommandLineText
import ControlAPI
import ControlClient
import Foundation
import GatewayConfiguration
import Synchronization

/// A transfer of `get` or `put`, from its beginning to the exit code.
struct TransferRun {
    /// Stands for standard output.
    static let standardOutput = "-"

    let desk: CommandContext
    let watch: TransferWatch
    /// File here for what the server says; `nil`: it is not written.
    let output: String?

    /// Ctrl-C cancels it.
    func untilEnd(_ interruption: Interruption) async throws {
        try await interruption.guarding {
            try await self.carryOut()
        } cancelled: {
            try await self.cancel()
        }
    }

    private func carryOut() async throws {
        let look = try await self.watched()
        let one = look.transfer
        if self.desk.printsJSON { try await self.desk.print(json: look.answer.body) }
        if let failure = TransferText.failure(one, remedy: Self.remedy(one)) {
            // The server's response to a refused upload is worth showing; the page of a download is not.
            if one.state == "finished", one.kind == "upload" { try await self.fetch() }
            throw failure
        }
        try await self.fetch()
        try await self.tell(TransferText.summary(one))
    }

    private func watched() async throws -> TransferWatch.Look {
        do {
            return try await self.watch.untilOver()
        } catch {
            // No other source sends the body.
            if let lost = self.watch.upload?.failure, error as? ControlFailure == lost {
                _ = try? await self.watch.cancel()
            }
            throw error
        }
    }

    private func cancel() async throws {
        let look = try await self.watch.cancel()
        let one = look.transfer
        if self.desk.printsJSON { try await self.desk.print(json: look.answer.body) }
        if one.state != "finished", let failure = TransferText.failure(one, remedy: Self.remedy(one)) { throw failure }
        throw ControlFailure(
            .cancelled, "interrupted, when transfer \(one.id) was finished already",
            remedy: one.kind == "upload" ? "" : "'sluice get --resume \(one.id)' gives what came")
    }

    /// How to continue a transfer that failed.
    private static func remedy(_ one: Transfer) -> String {
        if one.error?.code == "content-too-large" { return "with --to it goes to a file of the gateway's machine" }
        if one.kind == "upload" {
            return one.file == nil
                ? "the same command sends it again" : "'sluice put --resume \(one.id)' sends it again"
        }
        if one.canResume { return "'sluice get --resume \(one.id)' or the same command goes on with it" }
        if one.error?.code == "target-not-allowed" { return "control.targets lists what may be connected to" }
        if one.state == "failed" { return one.error?.retryable == true ? "it may succeed when it is tried again" : "" }
        return one.destination == nil
            ? "nothing of it is kept: only what goes to a file with --to can be gone on with"
            : "nothing of it is kept: the same command begins anew"
    }

    // MARK: What came

    private func tell(_ summary: String) async throws {
        let line = TerminalText.line(summary, limit: 600)
        if self.desk.printsJSON { return }
        if self.output != Self.standardOutput { return try await self.desk.print(line) }
        if Terminal.showsErrors { self.desk.note(line) }
    }

    private func fetch() async throws {
        guard let output = self.output else { return }
        var request = ControlRequest(.get, TransferText.path(self.watch.id) + "/content")
        request.patience = .seconds(60)
        let (_, body) = try await self.desk.session.open(request, accept: "*/*")
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
        var text = StreamedText()
        while let bytes = try await body.next() {
            // A terminal must not be steered by the peer.
            let safe = Terminal.showsOutput ? Array(TerminalText.safe(text.text(bytes)).utf8) : bytes
            try await self.desk.write(safe)
        }
    }
}

/// Follows a transfer to its end, with a progress bar on a terminal.
struct TransferWatch {
    private static let longestPause = Duration.milliseconds(200)
    /// How often a transfer is looked at that lost its body, to hear what became of it.
    private static let looksAfterLoss = 25

    let desk: CommandContext
    let id: String
    let upload: BodyUpload?

    private var request: ControlRequest { ControlRequest(.get, TransferText.path(self.id)) }

    /// A transfer, and the answer that showed it.
    struct Look: Sendable {
        let transfer: Transfer
        let answer: ControlResponse
    }

    /// - Returns: the transfer, which is over.
    func untilOver() async throws -> Look {
        defer { self.clear() }
        return try await self.follow()
    }

    private func follow() async throws -> Look {
        var speed = Speed()
        var pause = Duration.milliseconds(10)
        var looks = Self.looksAfterLoss
        while true {
            let look = try await self.look()
            if look.transfer.endedAt != nil { return look }
            if let failure = self.upload?.failure {
                looks -= 1
                if looks == 0 || look.transfer.state == "waiting" { throw failure }
            }
            let done = TransferText.progress(look.transfer, rate: nil).done
            self.draw(TransferText.progress(look.transfer, rate: speed.after(done, at: .now)))
            try await Task.sleep(for: pause)
            pause = min(pause * 2, Self.longestPause)
        }
    }

    /// Cancels the transfer; received data is kept if it can be resumed. Waits at most 5 s for the end.
    func cancel() async throws -> Look {
        do throws(ControlFailure) {
            _ = try await self.desk.session.send(ControlRequest(.post, TransferText.path(self.id) + ":cancel"))
        } catch {
            // It is over already.
            guard error.kind == .conflict else { throw error }
        }
        self.upload?.cancel()
        for _ in 0..<50 {
            let look = try await self.look()
            if look.transfer.endedAt != nil { return look }
            try await Task.sleep(for: .milliseconds(100))
        }
        return try await self.look()
    }

    private func look() async throws(ControlFailure) -> Look {
        let answer = try await self.desk.session.send(self.request)
        return Look(transfer: try answer.decoded(Transfer.self), answer: answer)
    }

    // MARK: How fast it is

    private struct Speed {
        private var last: (done: UInt64, at: ContinuousClock.Instant)?
        private var rate: Double?

        /// - Returns: bytes in a second, smoothed; `nil` at first.
        mutating func after(_ done: UInt64, at now: ContinuousClock.Instant) -> Double? {
            if let last, done >= last.done {
                let new = Double(done - last.done) / max(0.001, last.at.duration(to: now) / .seconds(1))
                self.rate = self.rate.map { $0 * 0.7 + new * 0.3 } ?? new
            }
            self.last = (done, now)
            return self.rate
        }
    }

    // MARK: The bar, beside the output

    private var isShown: Bool { Terminal.showsErrors && !self.desk.printsJSON }

    private func draw(_ progress: ProgressLine) {
        guard self.isShown else { return }
        let line = progress.text(cells: max(20, Terminal.columns - 1))
        ProcessOutput.say("\r\(line)\u{1B}[K")
    }

    private func clear() {
        if self.isShown { ProcessOutput.say("\r\u{1B}[K") }
    }
}

/// The body of a transfer on its way from a file here to the gateway, which takes it as fast as the server does.
final class BodyUpload: Sendable {
    private let task: Task<Void, Never>
    private let outcome: Outcome

    private final class Outcome: Sendable {
        let failure = Mutex<ControlFailure?>(nil)
    }

    /// Begins at once.
    init(_ file: String, to id: String, _ session: ControlSession) {
        var request = ControlRequest(.put, TransferText.path(id) + "/body")
        request.headers["Content-Type"] = "application/octet-stream"
        // The server may take its time.
        request.patience = .seconds(7 * 86_400)
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
