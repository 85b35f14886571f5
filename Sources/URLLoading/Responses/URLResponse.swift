import Foundation
import HTTPSemantics

/// What is known about the answer to a load before its content. It does not change once made.
open class URLResponse: NSObject, NSSecureCoding, NSCopying, @unchecked Sendable {
    open class var supportsSecureCoding: Bool { true }

    let facts: ResponseFacts

    /// - Parameters:
    ///   - expectedContentLength: in bytes, or -1 where it is not known.
    ///   - name: of the text's encoding, as registered with IANA.
    public init(url: URL, mimeType: String?, expectedContentLength length: Int, textEncodingName name: String?) {
        self.facts = ResponseFacts(
            url: url, mimeType: mimeType, expectedContentLength: Int64(length), textEncodingName: name,
            disposition: nil)
        super.init()
    }

    init(_ facts: ResponseFacts) {
        self.facts = facts
        super.init()
    }

    public required init?(coder: NSCoder) {
        guard let facts = ResponseArchive.facts(coder) else { return nil }
        self.facts = facts
        super.init()
    }

    open func encode(with coder: NSCoder) { ResponseArchive.write(self.facts, to: coder) }

    open override func copy() -> Any { self.copy(with: nil) }
    open func copy(with zone: NSZone?) -> Any { self }

    /// Where the content came from, after all redirects.
    open var url: URL? { self.facts.url }
    /// `type/subtype`, for HTTP in lower case.
    open var mimeType: String? { self.facts.mimeType }
    /// In bytes; -1 where it is not known.
    open var expectedContentLength: Int64 { self.facts.expectedContentLength }
    /// As registered with IANA; `nil` where the answer does not tell.
    open var textEncodingName: String? { self.facts.textEncodingName }
    /// From the server's wish, or the end of the URL's path, or "Unknown"; made fit for a disk, without a slash.
    open var suggestedFilename: String? { self.facts.suggestedFilename }

    open override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? URLResponse else { return false }
        return other === self || type(of: other) == type(of: self) && other.facts == self.facts
    }

    open override var hash: Int { self.facts.hashValue }

    open override var description: String {
        "<\(type(of: self))> { URL: \(self.url?.absoluteString ?? "(null)") }"
    }
}
