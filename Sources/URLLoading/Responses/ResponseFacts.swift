import Foundation

/// What is known of a response of any kind.
struct ResponseFacts: Hashable, Sendable {
    var url: URL?
    var mimeType: String?
    /// In bytes; -1 where it is not known.
    var expectedContentLength: Int64 = -1
    var textEncodingName: String?
    var suggestedFilename = "Unknown"
}
