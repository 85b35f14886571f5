import Foundation
import HTTPSemantics
import Synchronization

/// The head of an answer over HTTP.
open class HTTPURLResponse: URLResponse, @unchecked Sendable {
    package typealias Line = (name: String, value: String)

    private let status: Int
    private let lines: [Line]
    /// The lines by their names, once somebody has wanted them so: many only ask for the status.
    private let joined: Mutex<[String: String]?>
    /// As in "HTTP/1.1"; `nil` where it was not given.
    package let httpVersion: String?

    /// - Parameters:
    ///   - httpVersion: as in "HTTP/1.1".
    ///   - headerFields: by name; of names that differ in case alone the values are joined by a comma.
    public init?(url: URL, statusCode: Int, httpVersion: String?, headerFields: [String: String]?) {
        let lines = (headerFields ?? [:]).sorted { $0.key < $1.key }.map { (name: $0.key, value: $0.value) }
        self.status = statusCode
        self.lines = lines
        self.joined = Mutex(nil)
        self.httpVersion = httpVersion
        super.init(Self.facts(url, lines, contentIsEncoded: false))
    }

    /// The answer as it came over the wire.
    /// - Parameters:
    ///   - lines: in their order, repeated ones included.
    ///   - contentIsEncoded: then its length once decoded is not known.
    package init(
        url: URL, statusCode: Int, httpVersion: String, lines: [Line], contentIsEncoded: Bool
    ) {
        self.status = statusCode
        self.lines = lines
        self.joined = Mutex(nil)
        self.httpVersion = httpVersion
        super.init(Self.facts(url, lines, contentIsEncoded: contentIsEncoded))
    }

    /// Brings back a response from where it was written to.
    init(_ facts: ResponseFacts, statusCode: Int, httpVersion: String?, fields: [String: String]) {
        self.status = statusCode
        self.lines = []
        self.joined = Mutex(fields)
        self.httpVersion = httpVersion
        super.init(facts)
    }

    public required init?(coder: NSCoder) {
        guard coder.allowsKeyedCoding else { return nil }
        self.status = Int(clamping: coder.decodeInt64(forKey: "statusCode"))
        self.lines = []
        self.joined = Mutex(ResponseArchive.fields(coder))
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

    /// By name: well-known names in their usual spelling, others as they came. Use `value(forHTTPHeaderField:)` to look
    /// one up.
    open var allHeaderFields: [AnyHashable: Any] { self.fields }

    /// The field's value, those of repeated fields joined by a comma; names are told apart without regard to case.
    open func value(forHTTPHeaderField field: String) -> String? {
        let fields = self.fields
        return fields[field] ?? fields[StandardFieldNames.spelling(of: field)]
            ?? fields.first { $0.key.isSameFieldName(as: field) }?.value
    }

    /// What the code is called, in English.
    open class func localizedString(forStatusCode statusCode: Int) -> String { StatusPhrase.phrase(for: statusCode) }

    open override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? HTTPURLResponse else { return false }
        return other === self || super.isEqual(other) && other.status == self.status && other.fields == self.fields
    }

    open override var hash: Int { self.facts.hashValue ^ self.status }

    open override var description: String {
        let fields = self.fields.sorted { $0.key < $1.key }.map { "   \"\($0.key)\" = \($0.value);\n" }.joined()
        let url = self.url?.absoluteString ?? "(null)"
        return "<\(type(of: self))> { URL: \(url) }{ status: \(self.status), headers {\n\(fields)} }"
    }
}

extension HTTPURLResponse {
    fileprivate static func joined(_ lines: [Line]) -> [String: String] {
        var fields = [String: String](minimumCapacity: lines.count)
        // Names that nobody registered keep the spelling in which they first came.
        var others: [String] = []
        for line in lines {
            var name = StandardFieldNames.spelling(of: line.name)
            if !StandardFieldNames.isKnown(name) {
                if let spelt = others.first(where: { $0.isSameFieldName(as: name) }) {
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

    /// Of the field `name`; those of repeated lines joined by a comma.
    private static func value(of name: String, in lines: [Line]) -> String? {
        var value: String?
        for line in lines where line.name.isSameFieldName(as: name) {
            value = value.map { "\($0), \(line.value)" } ?? line.value
        }
        return value
    }

    /// -1 for what is no number, or several that differ.
    private static func length(_ lines: [Line]) -> Int64 {
        guard let value = self.value(of: "Content-Length", in: lines) else { return -1 }
        if value.utf8.count < 19, value.utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }) { return Int64(value) ?? -1 }
        let parts = value.split(separator: ",").map { $0.filter { $0 != " " && $0 != "\t" } }
        guard let first = parts.first, parts.allSatisfy({ $0 == first }), first.allSatisfy(\.isASCII),
            first.allSatisfy(\.isNumber)
        else { return -1 }
        return Int64(first) ?? -1
    }

    fileprivate static func facts(_ url: URL, _ lines: [Line], contentIsEncoded: Bool) -> ResponseFacts {
        let type = self.value(of: "Content-Type", in: lines).flatMap { ContentType($0) }
        return ResponseFacts(
            url: url, mimeType: type?.mediaType, expectedContentLength: contentIsEncoded ? -1 : self.length(lines),
            textEncodingName: type?.charset, disposition: self.value(of: "Content-Disposition", in: lines))
    }
}
