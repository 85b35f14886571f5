import Foundation
import HTTPSemantics

extension CookieFacts {
    typealias Properties = [HTTPCookiePropertyKey: Any]

    /// - Returns: `nil` when the name, the value or the path is missing, or both the domain and the origin.
    init?(_ properties: Properties) {
        guard let name = Self.text(properties[.name]), !name.isEmpty, let value = Self.text(properties[.value]),
            let path = Self.text(properties[.path]), let domain = Self.domain(properties)
        else { return nil }
        self.init(name: name, value: value, domain: domain, path: path)
        self.version = Self.text(properties[.version]) == "1" ? 1 : 0
        self.expires = Self.expiry(properties, version: self.version)
        self.isSecure = Self.flag(properties[.secure])
        self.isHTTPOnly = Self.flag(properties[.httpOnly])
        self.sameSite = SameSite(attribute: Self.text(properties[.sameSitePolicy]))
        self.comment = Self.text(properties[.comment])
        self.commentURL = Self.url(properties[.commentURL])
        self.ports = Self.ports(properties[.port], version: self.version)
        self.created = properties[.created] as? Date ?? Date()
    }

    /// What makes the same cookie again.
    var properties: Properties {
        var properties: Properties = [
            .name: self.name, .value: self.value, .domain: self.domain, .path: self.path,
            .version: String(self.version), .created: self.created,
        ]
        properties[.expires] = self.expires
        if self.expires == nil { properties[.discard] = "TRUE" }
        if self.isSecure { properties[.secure] = "TRUE" }
        if self.isHTTPOnly { properties[.httpOnly] = "TRUE" }
        if self.sameSite != .unspecified { properties[.sameSitePolicy] = self.sameSite.rawValue }
        properties[.comment] = self.comment
        properties[.commentURL] = self.commentURL
        properties[.port] = self.ports.map { $0.map(String.init).joined(separator: ",") }
        return properties
    }

    private static func text(_ value: Any?) -> String? {
        switch value {
        case let text as any StringProtocol: String(text)
        case let policy as HTTPCookieStringPolicy: policy.rawValue
        case let number as any BinaryInteger: "\(number)"
        case let number as NSNumber: number.stringValue
        case let text as NSString: "\(text)"
        default: nil
        }
    }

    private static func url(_ value: Any?) -> URL? {
        value as? URL ?? self.text(value).flatMap { URL(string: $0) }
    }

    private static func flag(_ value: Any?) -> Bool {
        if let flag = value as? Bool { return flag }
        return self.text(value).map { !$0.isEmpty } ?? false
    }

    private static func domain(_ properties: Properties) -> String? {
        let named = self.text(properties[.domain])?.withLoweredLetters
        return named ?? self.url(properties[.originURL])?.host(percentEncoded: false)?.withLoweredLetters
    }

    private static func expiry(_ properties: Properties, version: Int) -> Date? {
        if self.text(properties[.discard])?.isSameFieldName(as: "TRUE") == true { return nil }
        if version == 1 {
            return self.text(properties[.maximumAge]).flatMap { Int64($0) }.map {
                HTTPDate(Date()).advanced(by: $0).date
            }
        }
        if let date = properties[.expires] as? Date { return date }
        return self.text(properties[.expires]).flatMap { CookieDate.parse($0) }?.date
    }

    private static func ports(_ value: Any?, version: Int) -> [Int]? {
        let ports = self.text(value)?.split(separator: ",").compactMap { piece in
            UInt16(piece.filter { $0 != " " }).map { Int($0) }
        }
        guard let ports, !ports.isEmpty else { return nil }
        return version == 0 ? Array(ports.prefix(1)) : ports
    }
}
