import Foundation

/// A folder for one test, removed at its end.
final class TemporaryFolder: Sendable {
    let url: URL

    init() throws {
        self.url = FileManager.default.temporaryDirectory.appendingPathComponent("URLLoadingTests-\(UUID())")
        try FileManager.default.createDirectory(at: self.url, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: self.url) }

    /// The names in it, hidden ones included.
    var names: [String] {
        get throws { try FileManager.default.contentsOfDirectory(atPath: self.url.path).sorted() }
    }

    /// Removes and recreates the folder, as another program might.
    func empty() throws {
        try FileManager.default.removeItem(at: self.url)
        try FileManager.default.createDirectory(at: self.url, withIntermediateDirectories: true)
    }
}
