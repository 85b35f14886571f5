import Foundation
import HTTPSemantics

/// A response in an archive.
enum ResponseArchive {
    static func write(_ facts: ResponseFacts, to coder: NSCoder) {
        coder.encode(facts.url.flatMap { NSURL(string: $0.absoluteString) }, forKey: "url")
        coder.encode(facts.mimeType.map { NSString(string: $0) }, forKey: "mimeType")
        coder.encode(facts.expectedContentLength, forKey: "expectedContentLength")
        coder.encode(facts.textEncodingName.map { NSString(string: $0) }, forKey: "textEncodingName")
        coder.encode(NSString(string: facts.suggestedFilename), forKey: "suggestedFilename")
    }

    static func facts(_ coder: NSCoder) -> ResponseFacts? {
        guard coder.allowsKeyedCoding else { return nil }
        let url = coder.decodeObject(of: NSURL.self, forKey: "url").flatMap(\.absoluteString)
        let name = self.text("suggestedFilename", in: coder) ?? ""
        return ResponseFacts(
            url: url.flatMap { URL(string: $0) }, mimeType: self.text("mimeType", in: coder),
            expectedContentLength: max(-1, coder.decodeInt64(forKey: "expectedContentLength")),
            textEncodingName: self.text("textEncodingName", in: coder),
            // An archive may have been tampered with: of a path, only the last part is a name.
            suggestedFilename: name.split(separator: "/").last.flatMap { SuggestedFilename.fit(String($0)) }
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

    static func fields(_ coder: NSCoder) -> [String: String] {
        guard coder.containsValue(forKey: "fields") else { return [:] }
        let list = coder.decodeObject(of: [NSArray.self, NSString.self], forKey: "fields") as? [String] ?? []
        var fields: [String: String] = [:]
        for index in stride(from: 0, to: list.count - 1, by: 2) { fields[list[index]] = list[index + 1] }
        return fields
    }
}
