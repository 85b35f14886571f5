import CommandLineText
import ControlAPI
import ControlClient
import Foundation

/// Follows a transfer to its end, with a progress bar where somebody looks.
struct TransferWatch {
    private static let longestPause = Duration.milliseconds(200)
    /// How often a transfer is looked at that lost its body, to hear what became of it.
    private static let looksAfterLoss = 25

    let desk: ControlDesk
    let id: String
    let upload: BodyUpload?

    private var request: ControlRequest { ControlRequest(.get, TransferText.path(self.id)) }

    /// A transfer, and the answer that showed it.
    struct Look: Sendable {
        let transfer: Transfer
        let answer: ControlAnswer
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

    /// Ends it; what came is kept where that can be gone on with. Ending takes a moment: 5 s at most are waited for.
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
