import ArgumentParser
import Foundation
import URLLoading

/// Options of a request.
struct RequestOptions: ParsableArguments {
    @Option var method: String?
    @Option(help: "NAME:VALUE.") var header: [String] = []
    @Option(help: "A body of this text.") var data: String?
    @Option(help: ArgumentHelp("Upload a file.", valueName: "file")) var upload: String?
    @Option(help: ArgumentHelp("Upload a file as a stream whose length nobody knows.", valueName: "file"))
    var stream: String?
    @Option(help: "As in URLRequest.CachePolicy: 0 to 5.") var cachePolicy: UInt?
    @Flag(help: "Take a redirect for the result.") var stayHere = false

    func request(_ url: URL) throws -> URLRequest {
        var request = URLRequest(url: url)
        if self.upload != nil || self.stream != nil { request.httpMethod = "PUT" }
        if let data {
            request.httpMethod = "POST"
            request.httpBody = Data(data.utf8)
        }
        if let method { request.httpMethod = method }
        for line in self.header {
            let parts = line.split(separator: ":", maxSplits: 1).map(String.init)
            guard parts.count == 2 else { throw ValidationError("'\(line)' is not NAME:VALUE") }
            request.addValue(parts[1], forHTTPHeaderField: parts[0])
        }
        if let cachePolicy {
            guard let policy = URLRequest.CachePolicy(rawValue: cachePolicy) else {
                throw ValidationError("there is no cache policy \(cachePolicy)")
            }
            request.cachePolicy = policy
        }
        return request
    }
}
