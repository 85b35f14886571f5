import CommandLineText
import ControlAPI
import ControlClient
import Foundation

/// Follows a transfer to its end, with a progress bar where somebody looks; a signal cancels it, and what it received is
/// kept.
struct TransferWatch {
    private static let interval = Duration.milliseconds(200)

    let desk: ControlDesk
    let id: String
    /// That goes on with it, as `sluice get`.
    let command: String

    /// - Returns: the transfer, which did what was wanted.
    func untilEnd() async throws -> Transfer {
        let signals = await ProcessSignals()
        let following = Task { try await self.follow() }
        let listening = Task {
            for await _ in signals.wishes { following.cancel() }
        }
        let result = await following.result
        listening.cancel()
        self.clear()
        do {
            return try result.get()
        } catch let error where error is CancellationError || (error as? ControlFailure)?.kind == .cancelled {
            throw try await self.cancelled()
        }
    }

    private func cancelled() async throws -> ControlFailure {
        let path = TransferText.path(self.id) + ":cancel"
        let one = try await self.desk.session.send(ControlRequest(.post, path), for: Transfer.self)
        return TransferText.failure(try await self.settled(one), resuming: self.command)
            ?? ControlFailure(.cancelled, "interrupted; the transfer \(self.id) was over already")
    }

    /// Cancelling takes a moment. Bounded by 5 s.
    private func settled(_ transfer: Transfer) async throws -> Transfer {
        var one = transfer
        for _ in 0..<50 where one.endedAt == nil {
            try await Task.sleep(for: .milliseconds(100))
            one = try await self.desk.session.send(ControlRequest(.get, TransferText.path(self.id)), for: Transfer.self)
        }
        return one
    }

    private func follow() async throws -> Transfer {
        var last: (done: UInt64, at: ContinuousClock.Instant)?
        var rate: Double?
        while true {
            let one = try await self.desk.session.send(
                ControlRequest(.get, TransferText.path(self.id)), for: Transfer.self)
            guard one.endedAt == nil else {
                if let failure = TransferText.failure(one, resuming: self.command) { throw failure }
                return one
            }
            let now = ContinuousClock.now
            let done = TransferText.progress(one, rate: nil).done
            if let last, done >= last.done {
                let new = Double(done - last.done) / max(0.001, last.at.duration(to: now) / .seconds(1))
                rate = rate.map { $0 * 0.7 + new * 0.3 } ?? new
            }
            last = (done, now)
            self.draw(TransferText.progress(one, rate: rate))
            try await Task.sleep(for: Self.interval)
        }
    }

    // MARK: The bar, beside the output

    private var isShown: Bool { isatty(STDERR_FILENO) == 1 && !self.desk.printsJSON }

    private func draw(_ progress: ProgressLine) {
        guard self.isShown else { return }
        let line = progress.text(cells: max(20, Terminal.columns - 1))
        FileHandle.standardError.write(Data("\r\(line)\u{1B}[K".utf8))
    }

    private func clear() {
        if self.isShown { FileHandle.standardError.write(Data("\r\u{1B}[K".utf8)) }
    }
}
