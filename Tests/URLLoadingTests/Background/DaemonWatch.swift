import BackgroundTransfers
import Foundation
import StreamTransport
import Synchronization

/// An observer of a daemon. Logs the ends of transfers, and whether the journal knows where an upload is continued.
final class DaemonWatch: Sendable {
    let log = EventLog()
    private let link: DaemonLink

    init(_ folders: TransferFolders) async throws {
        self.link = DaemonLink(observing: folders, on: try LoopGroup(count: 1).loops[0]) {
            .cannotStart("not in this test")
        }
        let log = self.log
        let named = Mutex(Set<Int>())
        let failure = self.link.attach(within: .seconds(60)) { event in
            switch event {
            case .message(.removed(_, let task, _)): log.add("removed \(task)")
            case .message(.transfer(_, let transfer)):
                let (task, isNamed) = (transfer.identifier, transfer.uploadResumption != nil)
                let changes = named.withLock { isNamed ? $0.insert(task).inserted : $0.remove(task) != nil }
                if changes { log.add("\(isNamed ? "named" : "unnamed") \(task)") }
            default: break
            }
        }
        if let failure { throw failure }
    }

    /// Returns when the daemon has answered: it has noticed what happened before.
    func answered() async {
        _ = self.link.steer(.suspend, 0, of: "none")
    }
}
