import BackgroundTransfers
import Foundation
import StreamTransport

/// An observer of a daemon.
final class DaemonWatch: Sendable {
    let log = EventLog()
    private let link: DaemonLink

    init(_ folders: TransferFolders) async throws {
        self.link = DaemonLink(observing: folders, on: try LoopGroup(count: 1).loops[0]) {
            .cannotStart("not in this test")
        }
        let log = self.log
        let failure = self.link.attach(within: .seconds(60)) { event in
            if case .message(.removed(_, let task, _)) = event { log.add("removed \(task)") }
        }
        if let failure { throw failure }
    }

    /// Returns when the daemon has answered: it has noticed what happened before.
    func answered() async {
        _ = self.link.steer(.suspend, 0, of: "none")
    }
}
