import Foundation
import HTTPSemantics

/// The file in which cookies outlive the process: a property list, for its owner's eyes only.
struct CookieFile: Sendable {
    let url: URL

    /// The cookies of the file. One that cannot be read, or none at all, holds none.
    func read() -> [HTTPCookie] {
        guard let data = try? Data(contentsOf: self.url),
            let list = try? PropertyListSerialization.propertyList(from: data, format: nil) as? [[String: Any]]
        else { return [] }
        return list.compactMap { entry in
            let pairs = entry.map { (HTTPCookiePropertyKey($0.key), $0.value) }
            return HTTPCookie(properties: Dictionary(pairs) { first, _ in first })
        }
    }

    /// Writes the whole file anew, in one step: whoever reads it meanwhile, and whoever dies meanwhile, sees the old one.
    /// - Returns: whether it could be written.
    @discardableResult
    func write(_ cookies: [HTTPCookie]) -> Bool {
        let list = cookies.map { cookie in
            let pairs = cookie.facts.properties.map {
                ($0.key.rawValue, ($0.value as? URL)?.absoluteString ?? $0.value)
            }
            return Dictionary(pairs) { first, _ in first }
        }
        guard let data = try? PropertyListSerialization.data(fromPropertyList: list, format: .binary, options: 0) else {
            return false
        }
        return PrivateFile.write(data, to: self.url)
    }
}
