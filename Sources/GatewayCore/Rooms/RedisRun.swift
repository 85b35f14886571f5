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
    /// Called once if the server's append-only file, which counts as complete, may lack the last second after a crash of
    /// its machine. `nil` asks nothing.
    var fileIsIncomplete: (() -> Void)?

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
            guard let self else { return }
            self.name = RoomScripts.run(info: (try? result.get().text()) ?? "")
            if self.isDurable, RoomScripts.isAppendOnly(run: self.name) { self.checkFile() }
        }
    }

    private func checkFile() {
        guard let report = self.fileIsIncomplete.take() else { return }
        let command = RedisCommand("CONFIG", .text("GET"), .text("appendfsync"))
        self.client.perform(command, key: nil) { [weak self] result in
            switch result {
            case .success(let reply):
                guard let value = try? reply.map().first?.value.text() else { return }
                if value != "always" { report() }
            // A server that refuses to tell is not asked again.
            case .failure(.server): break
            case .failure(.notSent), .failure(.uncertain): self?.fileIsIncomplete = report
            }
        }
    }

    /// The connection is lost.
    func forget() { self.name = "" }
}
