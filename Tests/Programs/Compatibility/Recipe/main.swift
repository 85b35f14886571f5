import Foundation
import URLLoading

guard let url = CommandLine.arguments.dropFirst().first.flatMap({ URL(string: $0) }) else {
    print("usage: App URL")
    exit(64)
}
let (data, response) = try await URLSession.shared.data(from: url)
print((response as? HTTPURLResponse)?.statusCode ?? 0, "with", data.count, "bytes")
