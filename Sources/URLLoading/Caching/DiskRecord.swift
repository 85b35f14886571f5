import Foundation
import HTTPSemantics

/// What the file of a stored response says before the content.
struct DiskRecord: Codable {
    /// Which response this is: two keys may want the same file.
    let key: String
    let stored: Date
    let url: URL?
    let mimeType: String?
    let expectedContentLength: Int64
    let textEncodingName: String?
    let suggestedFilename: String
    /// These three are of a response over HTTP.
    let status: Int?
    let httpVersion: String?
    let fields: [String: String]?
    /// A property list.
    let userInfo: Data?
    let exchange: CachedExchange?

    init(_ cached: CachedURLResponse, key: String, stored: Date, exchange: CachedExchange) {
        let facts = cached.response.facts
        let http = cached.response as? HTTPURLResponse
        self.key = key
        self.stored = stored
        self.url = facts.url
        self.mimeType = facts.mimeType
        self.expectedContentLength = facts.expectedContentLength
        self.textEncodingName = facts.textEncodingName
        self.suggestedFilename = facts.suggestedFilename
        self.status = http?.statusCode
        self.httpVersion = http?.httpVersion
        self.fields = http?.fields
        self.userInfo = cached.userInfo.flatMap(Self.list)
        self.exchange = exchange
    }

    func response(with content: Data) -> CachedURLResponse {
        let facts = ResponseFacts(
            url: self.url, mimeType: self.mimeType, expectedContentLength: self.expectedContentLength,
            textEncodingName: self.textEncodingName,
            suggestedFilename: SuggestedFilename.fit(self.suggestedFilename) ?? SuggestedFilename.unknown)
        let response = self.status.map {
            HTTPURLResponse(facts, statusCode: $0, httpVersion: self.httpVersion, fields: self.fields ?? [:])
        }
        let notes = self.userInfo.flatMap {
            try? PropertyListSerialization.propertyList(from: $0, format: nil) as? [String: Any]
        }
        return CachedURLResponse(
            response: response ?? URLResponse(facts), data: content, userInfo: notes, storagePolicy: .allowed,
            exchange: self.exchange)
    }

    /// - Returns: `nil` for what no property list holds.
    private static func list(_ notes: [AnyHashable: Any]) -> Data? {
        var list: [String: Any] = [:]
        for (key, value) in notes {
            guard let key = key as? String else { return nil }
            list[key] = value
        }
        guard PropertyListSerialization.propertyList(list, isValidFor: .binary) else { return nil }
        return try? PropertyListSerialization.data(fromPropertyList: list, format: .binary, options: 0)
    }
}
