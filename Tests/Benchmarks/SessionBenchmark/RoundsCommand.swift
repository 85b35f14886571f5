import ArgumentParser
import Foundation
import URLLoading

struct RoundsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rounds",
        abstract: "Run many tasks, again and again: what grows behind the first rounds is a leak.")

    @Argument var url: String
    @Argument var count: Int
    @Option(help: "Unmeasured rounds.") var warmUp = 3
    @Option var rounds = 5

    func run() async throws {
        guard let url = URL(string: self.url) else { throw ValidationError("'\(self.url)' is no URL") }
        let configuration = URLSessionConfiguration.ephemeral
        configuration.urlCache = nil
        let session = URLSession(configuration: configuration)
        for _ in 0..<self.warmUp { try await self.round(session, url) }
        let measured = try await Measurement.of {
            for _ in 0..<self.rounds { try await self.round(session, url) }
            return self.rounds * self.count
        }
        try measured.tell()
    }

    private func round(_ session: URLSession, _ url: URL) async throws {
        let width = 64
        try await withThrowingTaskGroup(of: Void.self) { group in
            for index in 0..<self.count {
                if index >= width { try await group.next() }
                group.addTask { _ = try await session.data(from: url) }
            }
            try await group.waitForAll()
        }
    }
}
