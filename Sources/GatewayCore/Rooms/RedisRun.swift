import Cluster
import RedisEngine

/// Run of the server that a client is connected to, as the scripts of rooms know it. Scripts that are given it need not find
/// it, which takes them about as long as their own work.
final class RedisRun {
    private let client: RedisClient
    /// Whether a server with an append-only file starts again with all that it acknowledged.
    private let isDurable: Bool
    /// Empty while it is not known, and in a Redis Cluster, whose servers have one each: scripts find it then.
    private var name = ""

    init(_ client: RedisClient, isDurable: Bool) {
        self.client = client
        self.isDurable = isDurable
    }

    /// For the scripts that find a stream's epoch.
    var arguments: [RedisArgument] { [.text(self.name), .number(self.isDurable ? 1 : 0)] }

    /// Asks the server, which has another name for it after an append-only file was turned on.
    func ask() {
        if case .cluster = self.client.address.location { return }
        self.client.perform(RedisCommand("INFO"), key: nil) { [weak self] result in
            self?.name = RoomScripts.run(info: (try? result.get().text()) ?? "")
        }
    }

    /// The connection is lost.
    func forget() { self.name = "" }
}
