import Foundation
import HTTPSemantics
import HTTPTransport
import HTTPTypes
import Synchronization
import WireText

/// The metadata of an HTTP response.
open class HTTPURLResponse: URLResponse, @unchecked Sendable {  // Not final; its lock guards what changes.
    private let status: Int
    private let lines: [FieldLine]
    /// The lines combined by name, created on first use: many programs read only the status.
    private let joined: Mutex<[String: String]?>
    /// Such as "HTTP/1.1"; `nil` if not given.
    package let httpVersion: String?

    /// A response without a URL and without fields, with the status code 0.
    public override init() {
        self.status = 0
        self.lines = []
        self.joined = Mutex(nil)
        self.httpVersion = nil
        super.init()
    }

    /// A response without fields, with the status code 0.
    public override init(
        url: URL, mimeType: String?, expectedContentLength length: Int, textEncodingName name: String?
    ) {
        self.status = 0
        self.lines = []
        self.joined = Mutex(nil)
        self.httpVersion = nil
        super.init(url: url, mimeType: mimeType, expectedContentLength: length, textEncodingName: name)
    }

    /// - Parameters:
    ///   - httpVersion: such as "HTTP/1.1".
    ///   - headerFields: values of names that differ only in case are joined by a comma.
    public init?(url: URL, statusCode: Int, httpVersion: String?, headerFields: [String: String]?) {
        let lines = (headerFields ?? [:]).sorted { $0.key < $1.key }.map { FieldLine($0.key, $0.value) }
        self.status = statusCode
        self.lines = lines
        self.joined = Mutex(nil)
        self.httpVersion = httpVersion
        super.init(Self.metadata(url, lines, contentIsEncoded: false))
    }

    /// A received response.
    /// - Parameters:
    ///   - lines: the field lines in their order, repeated ones included.
    ///   - contentIsEncoded: whether the content has a content coding; its decoded length is then unknown.
    package init(
        url: URL, statusCode: Int, httpVersion: String, lines: [FieldLine], contentIsEncoded: Bool
    ) {
        self.status = statusCode
        self.lines = lines
        self.joined = Mutex(nil)
        self.httpVersion = httpVersion
        super.init(Self.metadata(url, lines, contentIsEncoded: contentIsEncoded))
    }

    package convenience init(
        url: URL, statusCode: Int, httpVersion: String, lines: [(name: String, value: String)], contentIsEncoded: Bool
    ) {
        self.init(
            url: url, statusCode: statusCode, httpVersion: httpVersion,
            lines: lines.map { FieldLine($0.name, $0.value) }, contentIsEncoded: contentIsEncoded)
    }

    /// A response read from the disk cache.
    init(_ metadata: ResponseMetadata, statusCode: Int, httpVersion: String?, fields: [String: String]) {
        self.status = statusCode
        self.lines = []
        self.joined = Mutex(fields)
        self.httpVersion = httpVersion
        super.init(metadata)
    }

    public required init?(coder: NSCoder) {
        guard coder.allowsKeyedCoding else { return nil }
        self.status = Int(clamping: coder.decodeInt64(forKey: "statusCode"))
        self.lines = []
        self.joined = Mutex(ResponseArchive.fields(coder) ?? [:])
        self.httpVersion = ResponseArchive.text("httpVersion", in: coder)
        super.init(coder: coder)
    }

    open override func encode(with coder: NSCoder) {
        super.encode(with: coder)
        coder.encode(Int64(self.status), forKey: "statusCode")
        coder.encode(self.httpVersion.map { NSString(string: $0) }, forKey: "httpVersion")
        ResponseArchive.write(self.fields, to: coder)
    }

    var fields: [String: String] {
        self.joined.withLock { joined in
            if let joined { return joined }
            let fields = Self.joined(self.lines)
            joined = fields
            return fields
        }
    }

    open var statusCode: Int { self.status }

    /// By name: well-known names in their standard spelling, others as received. Use `value(forHTTPHeaderField:)` for
    /// case-insensitive lookup.
    open var allHeaderFields: [AnyHashable: Any] { self.fields }

    /// The field's value; values of repeated fields are joined by a comma. Names are case-insensitive.
    open func value(forHTTPHeaderField field: String) -> String? {
        let fields = self.fields
        return fields[field] ?? fields[StandardFieldNames.spelling(of: field)]
            ?? fields.first { $0.key.matchesIgnoringCase(field) }?.value
    }

    /// The reason phrase of a status code, in English.
    open class func localizedString(forStatusCode statusCode: Int) -> String { StatusPhrase.phrase(for: statusCode) }

    open override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? HTTPURLResponse else { return false }
        return other === self || super.isEqual(other) && other.status == self.status && other.fields == self.fields
    }

    open override var hash: Int { self.metadata.hashValue ^ self.status }

    open override var description: String {
        let fields = self.fields.sorted { $0.key < $1.key }.map { "   \"\($0.key)\" = \($0.value);\n" }.joined()
        let url = self.url?.absoluteString ?? "(null)"
        return "<\(type(of: self))> { URL: \(url) }{ status: \(self.status), headers {\n\(fields)} }"
    }

    // MARK: Fields

    private static func joined(_ lines: [FieldLine]) -> [String: String] {
        var fields = [String: String](minimumCapacity: lines.count)
        // Unknown names keep the spelling of their first occurrence.
        var others: [String] = []
        for line in lines {
            var name = StandardFieldNames.spelling(of: line.name)
            if !StandardFieldNames.isKnown(name) {
                if let spelt = others.first(where: { $0.matchesIgnoringCase(name) }) {
                    name = spelt
                } else {
                    others.append(name)
                }
            }
            if let before = fields.updateValue(line.value, forKey: name) {
                fields[name] = "\(before), \(line.value)"
            }
        }
        return fields
    }

    /// The value of the field; values of repeated lines are joined by a comma.
    private static func value(of name: String, in lines: [FieldLine]) -> String? {
        let fields = FieldLines(lines)
        let value = fields.single(name)
        return value.isRepeated ? fields.values(name).joined(separator: ", ") : value.first
    }

    /// -1 for an invalid number, or for several that differ.
    private static func length(_ lines: [FieldLine]) -> Int64 {
        guard let value = self.value(of: "Content-Length", in: lines) else { return -1 }
        if let length = value.decimal { return length }
        let parts = value.split(separator: ",").map { $0.filter { $0 != " " && $0 != "\t" } }
        guard let first = parts.first, parts.allSatisfy({ $0 == first }), first.allSatisfy(\.isASCII),
            first.allSatisfy(\.isNumber)
        else { return -1 }
        return Int64(first) ?? -1
    }

    private static func metadata(_ url: URL, _ lines: [FieldLine], contentIsEncoded: Bool) -> ResponseMetadata {
        ResponseMetadata(
            url: url, contentType: self.value(of: "Content-Type", in: lines),
            expectedContentLength: contentIsEncoded ? -1 : self.length(lines),
            disposition: self.value(of: "Content-Disposition", in: lines))
    }

    /// - Parameter contentIsEncoded: whether the content has a content coding; its decoded length is then unknown.
    package convenience init(
        url: URL, statusCode: Int, httpVersion: String, fields: HTTPFields, contentIsEncoded: Bool
    ) {
        self.init(
            url: url, statusCode: statusCode, httpVersion: httpVersion,
            lines: fields.map { (name: $0.name.rawName, value: $0.value) }, contentIsEncoded: contentIsEncoded)
    }

    /// The fields as `HTTPFields`. Repeated fields are combined, as in `allHeaderFields`.
    package var httpFields: HTTPFields {
        var fields = HTTPFields()
        for (name, value) in self.fields.sorted(by: { $0.key < $1.key }) {
            guard let name = HTTPField.Name(name) else { continue }
            fields.append(HTTPField(name: name, value: value))
        }
        return fields
    }
}

/// Well-known field names in their standard spelling.
enum StandardFieldNames {
    private static let names = [
        "Accept", "Accept-Charset", "Accept-Encoding", "Accept-Language", "Accept-Ranges", "Age", "Allow",
        "Alt-Svc", "Authorization", "Cache-Control", "Connection", "Content-Disposition", "Content-Encoding",
        "Content-Language", "Content-Length", "Content-Location", "Content-MD5", "Content-Range", "Content-Type",
        "Cookie", "Date", "ETag", "Expect", "Expires", "From", "Host", "If-Match", "If-Modified-Since",
        "If-None-Match", "If-Range", "If-Unmodified-Since", "Keep-Alive", "Last-Modified", "Link", "Location",
        "Max-Forwards", "P3P", "Pragma", "Proxy-Authenticate", "Proxy-Authorization", "Range", "Referer",
        "Retry-After", "Server", "Set-Cookie", "Strict-Transport-Security", "TE", "Trailer", "Transfer-Encoding",
        "Upgrade", "User-Agent", "Vary", "Via", "WWW-Authenticate", "Warning",
    ]
    private static let spellings = Dictionary(names.map { ($0.loweredASCII, $0) }) { first, _ in first }

    private static let usual = Set(names)

    /// The standard spelling of `name`; `name` itself if it is not well known.
    static func spelling(of name: String) -> String {
        self.usual.contains(name) ? name : self.spellings[name.loweredASCII] ?? name
    }

    /// - Parameter name: as returned by `spelling(of:)`.
    static func isKnown(_ name: String) -> Bool { self.usual.contains(name) }
}

/// The reason phrases of status codes (RFC 9110 §15 and the IANA registry).
enum StatusPhrase {
    private static let phrases: [Int: String] = [
        100: "Continue", 101: "Switching Protocols", 102: "Processing", 103: "Early Hints", 200: "OK",
        201: "Created", 202: "Accepted", 203: "Non-Authoritative Information", 204: "No Content",
        205: "Reset Content", 206: "Partial Content", 207: "Multi-Status", 208: "Already Reported", 226: "IM Used",
        300: "Multiple Choices", 301: "Moved Permanently", 302: "Found", 303: "See Other", 304: "Not Modified",
        305: "Use Proxy", 307: "Temporary Redirect", 308: "Permanent Redirect", 400: "Bad Request",
        401: "Unauthorized", 402: "Payment Required", 403: "Forbidden", 404: "Not Found",
        405: "Method Not Allowed", 406: "Not Acceptable", 407: "Proxy Authentication Required",
        408: "Request Timeout", 409: "Conflict", 410: "Gone", 411: "Length Required", 412: "Precondition Failed",
        413: "Payload Too Large", 414: "URI Too Long", 415: "Unsupported Media Type", 416: "Range Not Satisfiable",
        417: "Expectation Failed", 421: "Misdirected Request", 422: "Unprocessable Entity", 423: "Locked",
        424: "Failed Dependency", 425: "Too Early", 426: "Upgrade Required", 428: "Precondition Required",
        429: "Too Many Requests", 431: "Request Header Fields Too Large", 451: "Unavailable For Legal Reasons",
        500: "Internal Server Error", 501: "Not Implemented", 502: "Bad Gateway", 503: "Service Unavailable",
        504: "Gateway Timeout", 505: "HTTP Version Not Supported", 506: "Variant Also Negotiates",
        507: "Insufficient Storage", 508: "Loop Detected", 511: "Network Authentication Required",
    ]

    /// For an unregistered code, the name of its class.
    static func phrase(for status: Int) -> String {
        if let phrase = self.phrases[status] { return phrase }
        return switch status {
        case 100..<200: "Informational"
        case 200..<300: "Success"
        case 300..<400: "Redirection"
        case 400..<500: "Client Error"
        default: "Server Error"
        }
    }
}
