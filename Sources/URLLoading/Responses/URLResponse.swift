import ByteKernels
import Foundation
import HTTPSemantics

/// The metadata of a response. Immutable.
open class URLResponse: NSObject, NSSecureCoding, NSCopying, @unchecked Sendable {  // Not final; immutable.
    open class var supportsSecureCoding: Bool { true }

    let metadata: ResponseMetadata

    /// A response without a URL, of unknown length.
    public override init() {
        self.metadata = ResponseMetadata(
            url: nil, mimeType: nil, expectedContentLength: -1, textEncodingName: nil,
            suggestedFilename: SuggestedFilename.unknown)
        super.init()
    }

    /// - Parameters:
    ///   - expectedContentLength: in bytes; -1 if unknown.
    ///   - name: the IANA name of the text encoding.
    public init(url: URL, mimeType: String?, expectedContentLength length: Int, textEncodingName name: String?) {
        self.metadata = ResponseMetadata(
            url: url, mimeType: mimeType, expectedContentLength: Int64(length), textEncodingName: name,
            disposition: nil)
        super.init()
    }

    init(_ metadata: ResponseMetadata) {
        self.metadata = metadata
        super.init()
    }

    public required init?(coder: NSCoder) {
        guard let metadata = ResponseArchive.metadata(coder) else { return nil }
        self.metadata = metadata
        super.init()
    }

    open func encode(with coder: NSCoder) { ResponseArchive.write(self.metadata, to: coder) }

    open override func copy() -> Any { self.copy(with: nil) }
    open func copy(with zone: NSZone?) -> Any { self }

    /// The URL of the response, after all redirects.
    open var url: URL? { self.metadata.url }
    /// `type/subtype`; in lower case for HTTP.
    open var mimeType: String? { self.metadata.mimeType }
    /// In bytes; -1 if unknown.
    open var expectedContentLength: Int64 { self.metadata.expectedContentLength }
    /// The IANA name; `nil` if the response has none.
    open var textEncodingName: String? { self.metadata.textEncodingName }
    /// From Content-Disposition, the last component of the URL's path, or "Unknown"; sanitized, without slashes.
    open var suggestedFilename: String? { self.metadata.suggestedFilename }

    open override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? URLResponse else { return false }
        return other === self || type(of: other) == type(of: self) && other.metadata == self.metadata
    }

    open override var hash: Int { self.metadata.hashValue }

    open override var description: String {
        "<\(type(of: self))> { URL: \(self.url?.absoluteString ?? "(null)") }"
    }
}

/// The metadata of a response of any kind. Header fields are parsed only when a property is read: most never are.
struct ResponseMetadata: Sendable {
    private enum Kind: Sendable {
        case given(mimeType: String?, textEncodingName: String?)
        case contentTypeField(String?)
    }

    private enum Name: Sendable {
        case given(String)
        case derived(disposition: String?)
    }

    var url: URL?
    /// In bytes; -1 if unknown.
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
            .derived(disposition: disposition))
    }

    /// - Parameter contentType: the value of Content-Type.
    init(url: URL, contentType: String?, expectedContentLength: Int64, disposition: String?) {
        self.init(url, .contentTypeField(contentType), expectedContentLength, .derived(disposition: disposition))
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
        case .contentTypeField(let type): type.flatMap { ContentType($0) }?.mediaType
        }
    }

    var textEncodingName: String? {
        switch self.kind {
        case .given(_, let name): name
        case .contentTypeField(let type): type.flatMap { ContentType($0) }?.charset
        }
    }

    var suggestedFilename: String {
        switch self.name {
        case .given(let name): name
        case .derived(let disposition):
            SuggestedFilename.choose(disposition: disposition, path: self.url?.path(percentEncoded: true) ?? "")
        }
    }
}

extension ResponseMetadata: Hashable {
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

/// Encodes and decodes response metadata and header fields for `NSCoding`.
enum ResponseArchive {
    static func write(_ metadata: ResponseMetadata, to coder: NSCoder) {
        coder.encode(metadata.url.flatMap { NSURL(string: $0.absoluteString) }, forKey: "url")
        coder.encode(metadata.mimeType.map { NSString(string: $0) }, forKey: "mimeType")
        coder.encode(metadata.expectedContentLength, forKey: "expectedContentLength")
        coder.encode(metadata.textEncodingName.map { NSString(string: $0) }, forKey: "textEncodingName")
        coder.encode(NSString(string: metadata.suggestedFilename), forKey: "suggestedFilename")
    }

    static func metadata(_ coder: NSCoder) -> ResponseMetadata? {
        guard coder.allowsKeyedCoding else { return nil }
        let url = coder.decodeObject(of: NSURL.self, forKey: "url").flatMap(\.absoluteString)
        let name = self.text("suggestedFilename", in: coder) ?? ""
        return ResponseMetadata(
            url: url.flatMap { URL(string: $0) }, mimeType: self.text("mimeType", in: coder),
            expectedContentLength: max(-1, coder.decodeInt64(forKey: "expectedContentLength")),
            textEncodingName: self.text("textEncodingName", in: coder),
            // An archive may have been tampered with: only the last component of a path is used.
            suggestedFilename: name.split(separator: "/").last.flatMap { SuggestedFilename.sanitized(String($0)) }
                ?? SuggestedFilename.unknown)
    }

    static func text(_ key: String, in coder: NSCoder) -> String? {
        coder.decodeObject(of: NSString.self, forKey: key).map { "\($0)" }
    }

    static func write(_ fields: [String: String], to coder: NSCoder) {
        let pairs = fields.sorted { $0.key < $1.key }.flatMap {
            [NSString(string: $0.key), NSString(string: $0.value)]
        }
        coder.encode(NSArray(array: pairs), forKey: "fields")
    }

    static func fields(_ coder: NSCoder) -> [String: String]? {
        guard coder.containsValue(forKey: "fields"),
            let list = coder.decodeObject(of: [NSArray.self, NSString.self], forKey: "fields") as? [String]
        else { return nil }
        var fields: [String: String] = [:]
        for index in stride(from: 0, to: list.count - 1, by: 2) { fields[list[index]] = list[index + 1] }
        return fields
    }
}

extension Data {
    init(copying bytes: RawSpan) {
        self.init()
        self.append(copying: bytes)
    }
}
