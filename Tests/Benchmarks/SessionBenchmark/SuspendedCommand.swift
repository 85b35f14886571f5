import ArgumentParser
import Foundation
import URLLoading

struct SuspendedCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "suspended", abstract: "Hold many tasks that were never resumed.")

    @Argument var url: String
    @Argument var count: Int

    func run() async throws {
        guard let url = URL(string: self.url) else { throw ValidationError("'\(self.url)' is no URL") }
        let session = URLSession(configuration: .ephemeral)
        // Memory that the first tasks allocate once is not counted.
        var held = (0..<100).map { _ in session.dataTask(with: url) }
        let measured = try await Measurement.of {
            held += (0..<self.count).map { _ in session.dataTask(with: url) }
            return self.count
        }
        try measured.tell()
        withExtendedLifetime(held) {}
        session.invalidateAndCancel()
    }
}
