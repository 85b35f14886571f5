import HTTPTransport
import StreamTransport

/// The loops of all tests: one for the pools, one for the servers.
enum TestLoops {
    static let pools = TestLoops.make()
    static let servers = TestLoops.make()

    private static func make() -> Loop {
        guard let loop = (try? LoopGroup(count: 1))?.loops.first else { fatalError("no loop can be started") }
        return loop
    }
}

extension ConnectionPool {
    convenience init(settings: PoolSettings = PoolSettings()) {
        self.init(settings: settings, on: TestLoops.pools)
    }
}
