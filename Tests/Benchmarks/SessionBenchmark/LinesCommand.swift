import ArgumentParser
import Foundation
import URLLoading

struct LinesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "lines", abstract: "Count the lines of a text.")

    @Argument var url: String

    func run() async throws {
        guard let url = URL(string: self.url) else { throw ValidationError("'\(self.url)' is no URL") }
        let session = URLSession(configuration: .ephemeral)
        let measured = try await Measurement.of {
            var count = 0
            let (bytes, _) = try await session.bytes(from: url)
            for try await _ in bytes.lines { count += 1 }
            return count
        }
        try measured.tell()
    }
}
