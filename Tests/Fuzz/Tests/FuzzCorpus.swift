import Foundation
import FuzzTargets

/// The committed inputs of the fuzz targets: examples, and what once went wrong.
enum FuzzCorpus {
    struct Input {
        /// From `Corpus` on, as in `frames/close-then-more`.
        let name: String
        let bytes: [UInt8]
    }

    private static let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .appending(path: "Corpus")

    static func folders() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: self.folder.path()).sorted()
    }

    static func inputs(of target: FuzzTarget) throws -> [Input] {
        let folder = self.folder.appending(path: target.rawValue)
        return try FileManager.default.contentsOfDirectory(atPath: folder.path()).sorted().map { name in
            let data = try Data(contentsOf: folder.appending(path: name))
            return Input(name: "\(target.rawValue)/\(name)", bytes: [UInt8](data))
        }
    }
}
