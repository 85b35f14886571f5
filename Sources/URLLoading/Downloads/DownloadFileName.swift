import Foundation

/// The name of a download's file, which is directly in the folder for temporary files: whoever makes up a name cannot
/// lead us anywhere else.
package struct DownloadFileName: Hashable, Sendable {
    static let beginning = "URLLoadingDownload_"
    static let ending = ".tmp"

    package let text: String

    /// - Returns: `nil` for a name that we would not give.
    package init?(_ text: String) {
        let middle = text.utf8.dropFirst(Self.beginning.utf8.count).dropLast(Self.ending.utf8.count)
        let isOrdinary = middle.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                UInt8(ascii: "A")...UInt8(ascii: "Z"):
                true
            default: false
            }
        }
        guard text.hasPrefix(Self.beginning), text.hasSuffix(Self.ending), middle.count == 6, isOrdinary else {
            return nil
        }
        self.text = text
    }

    package var url: URL { FileManager.default.temporaryDirectory.appendingPathComponent(self.text) }
}
