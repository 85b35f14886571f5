import Foundation
import WebSocketProtocol

/// A stream that once failed, or is similar to one that did, stored in `Corpus` as text: settings (`from`, `deflate`,
/// `limit`), the last event (`ends`), bytes in hexadecimal, and notes after `#`.
struct CorpusEntry: CustomStringConvertible {
    struct Malformed: Error {
        let line: String
    }

    let name: String
    var setting = EngineSetting.receiving(from: .client)
    var ending: String?
    var bytes: [UInt8] = []

    var description: String { self.name }

    static func all() throws -> [CorpusEntry] {
        let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appending(path: "Corpus")
        return try FileManager.default.contentsOfDirectory(atPath: folder.path()).filter { $0.hasSuffix(".stream") }
            .sorted().map { try CorpusEntry(name: $0, String(contentsOf: folder.appending(path: $0), encoding: .utf8)) }
    }

    init(name: String, _ text: String) throws {
        self.name = name
        for line in text.split(separator: "\n") {
            let line = line.prefix { $0 != "#" }.trimmingCharacters(in: .whitespaces)
            let words = line.split(separator: " ", maxSplits: 1).map(String.init)
            switch (words.first, words.last) {
            case (nil, _): continue
            case ("from", "client"): self.setting.role = .server
            case ("from", "server"): self.setting.role = .client
            case ("deflate", "takeover"): self.setting.deflate = InflatingTests.takeover
            case ("deflate", "no-takeover"): self.setting.deflate = InflatingTests.noTakeover
            case ("limit", let limit?): self.setting.maximumMessageSize = Int(limit)
            case ("ends", let ending?): self.ending = ending
            default: try self.add(line)
            }
        }
    }

    private mutating func add(_ line: String) throws {
        for word in line.split(separator: " ") {
            guard word.count == 2, let byte = UInt8(word, radix: 16) else { throw Malformed(line: line) }
            self.bytes.append(byte)
        }
    }
}
