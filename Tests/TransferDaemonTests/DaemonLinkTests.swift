import BackgroundTransfers
import Foundation
import StreamTransport
import Synchronization
import Testing

@Suite("Connection to the daemon", .timeLimit(.minutes(5)))
struct DaemonLinkTests {
    @Test func daemonThatDoesNotServeIsStartedEverLessOften() throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "DaemonLinkTests-\(UUID())").path
        let starts = Counter()
        let link = DaemonLink(
            observing: TransferFolders(runtime: folder, state: folder), on: try LoopGroup(count: 1).loops[0]
        ) {
            starts.count.withLock { $0 += 1 }
            return nil
        }
        let failure = link.attach(within: .seconds(3)) { _ in }
        guard case .unreachable = failure else { throw POSIXError(.EIO) }
        // At 0, 0.15, 0.45, 1.05 and 2.25 seconds.
        #expect(1...6 ~= starts.count.withLock { $0 })
    }

    private final class Counter: Sendable {
        let count = Mutex(0)
    }
}
