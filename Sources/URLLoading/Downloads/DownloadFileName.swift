import Foundation

/// The name of a download's file, which is directly in the folder for temporary files: whoever makes up a name cannot
/// lead us anywhere else.
package struct DownloadFileName: Hashable, Sendable {
    private static let beginning = "URLLoadingDownload_"
    private static let ending = ".tmp"
    private static let letters = Array("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ".utf8)
    private static let letterCount = 12

    package let text: String

    /// - Returns: `nil` for a name that we would not give.
    package init?(_ text: String) {
        guard text.hasPrefix(Self.beginning), text.hasSuffix(Self.ending) else { return nil }
        let middle = text.utf8.dropFirst(Self.beginning.utf8.count).dropLast(Self.ending.utf8.count)
        guard middle.count == Self.letterCount, middle.allSatisfy(Self.letters.contains) else { return nil }
        self.text = text
    }

    private init(middle: [UInt8]) {
        self.text = Self.beginning + String(decoding: middle, as: UTF8.self) + Self.ending
    }

    /// One that nobody can guess.
    static func random() -> DownloadFileName {
        Self(middle: (0..<Self.letterCount).map { _ in Self.letters.randomElement() ?? Self.letters[0] })
    }

    package var url: URL { FileManager.default.temporaryDirectory.appendingPathComponent(self.text) }
}
