import ControlClient
import Foundation
import Synchronization

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

    /// Why the gateway has not got all of it. What became of the transfer may tell a better reason.
    var failure: ControlFailure? { self.outcome.failure.withLock { $0 } }

    func cancel() {
        self.task.cancel()
    }
}
