import CommandLineText
import ControlAPI
import ControlClient
import Foundation

/// A transfer of `get` or `put`, from its beginning to the exit code.
struct TransferRun {
    /// Stands for standard output.
    static let standardOutput = "-"

    let desk: ControlDesk
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
            // What a server says against a file is worth reading; in place of a page it is not.
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
            // Nobody else brings the body.
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

    /// How to go on with one that came to no good end.
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
