import Foundation

/// A folder of its own for one test, gone when the test is over.
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

    /// As if another program had removed and made it anew.
    func empty() throws {
        try FileManager.default.removeItem(at: self.url)
        try FileManager.default.createDirectory(at: self.url, withIntermediateDirectories: true)
    }
}
