import Foundation
import HTTPSemantics

/// What is known of a response of any kind.
struct ResponseFacts: Sendable {
    private enum Kind: Sendable {
        case given(mimeType: String?, textEncodingName: String?)
        /// Taken apart when it is asked for.
        case said(contentType: String?)
    }

    private enum Name: Sendable {
        case given(String)
        /// Made when it is asked for: few ever do.
        case wished(disposition: String?)
    }

    var url: URL?
    /// In bytes; -1 where it is not known.
    var expectedContentLength: Int64
    private let kind: Kind
    private let name: Name

    init(
        url: URL?, mimeType: String?, expectedContentLength: Int64, textEncodingName: String?, suggestedFilename: String
    ) {
        self.init(
            url, .given(mimeType: mimeType, textEncodingName: textEncodingName), expectedContentLength,
            .given(suggestedFilename))
    }

    /// - Parameter disposition: the value of Content-Disposition.
    init(
        url: URL, mimeType: String?, expectedContentLength: Int64, textEncodingName: String?, disposition: String?
    ) {
        self.init(
            url, .given(mimeType: mimeType, textEncodingName: textEncodingName), expectedContentLength,
            .wished(disposition: disposition))
    }

    /// - Parameter contentType: the value of Content-Type.
    init(url: URL, contentType: String?, expectedContentLength: Int64, disposition: String?) {
        self.init(url, .said(contentType: contentType), expectedContentLength, .wished(disposition: disposition))
    }

    private init(_ url: URL?, _ kind: Kind, _ length: Int64, _ name: Name) {
        self.url = url
        self.expectedContentLength = length
        self.kind = kind
        self.name = name
    }

    var mimeType: String? {
        switch self.kind {
        case .given(let type, _): type
        case .said(let type): type.flatMap { ContentType($0) }?.mediaType
        }
    }

    var textEncodingName: String? {
        switch self.kind {
        case .given(_, let name): name
        case .said(let type): type.flatMap { ContentType($0) }?.charset
        }
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
