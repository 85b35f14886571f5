import Foundation
import HTTPSemantics

/// What is known of a response of any kind.
struct ResponseFacts: Sendable {
    private enum Name: Sendable {
        case given(String)
        /// Made when it is asked for: few ever do.
        case wished(disposition: String?)
    }

    var url: URL?
    var mimeType: String?
    /// In bytes; -1 where it is not known.
    var expectedContentLength: Int64
    var textEncodingName: String?
    private let name: Name

    init(
        url: URL?, mimeType: String?, expectedContentLength: Int64, textEncodingName: String?, suggestedFilename: String
    ) {
        self.init(url, mimeType, expectedContentLength, textEncodingName, .given(suggestedFilename))
    }

    /// - Parameter disposition: the value of Content-Disposition.
    init(
        url: URL, mimeType: String?, expectedContentLength: Int64, textEncodingName: String?, disposition: String?
    ) {
        self.init(url, mimeType, expectedContentLength, textEncodingName, .wished(disposition: disposition))
    }

    private init(_ url: URL?, _ mimeType: String?, _ length: Int64, _ encoding: String?, _ name: Name) {
        self.url = url
        self.mimeType = mimeType
        self.expectedContentLength = length
        self.textEncodingName = encoding
        self.name = name
    }

    var suggestedFilename: String {
        switch self.name {
        case .given(let name): name
        case .wished(let disposition):
            SuggestedFilename.choose(disposition: disposition, path: self.url?.path(percentEncoded: true) ?? "")
        }
    }
}

extension ResponseFacts: Hashable {
    static func == (left: Self, right: Self) -> Bool {
        left.url == right.url && left.mimeType == right.mimeType
            && left.expectedContentLength == right.expectedContentLength
            && left.textEncodingName == right.textEncodingName && left.suggestedFilename == right.suggestedFilename
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(self.url)
        hasher.combine(self.mimeType)
        hasher.combine(self.expectedContentLength)
    }
}
