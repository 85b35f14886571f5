/// The rules about the paths that a cookie belongs to (RFC 6265bis §5.1.4).
package enum CookiePath {
    /// The folder of a request's path, for cookies that name no path.
    /// - Parameter path: of the request, without its query.
    package static func standard(for path: String) -> String {
        guard path.utf8.first == UInt8(ascii: "/"), let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")),
            slash != path.startIndex
        else { return "/" }
        return String(path[..<slash])
    }

    /// Whether a cookie for `cookiePath` goes along with a request for `path`.
    package static func matches(_ path: String, cookiePath: String) -> Bool {
        let path = path.isEmpty ? "/" : path
        guard path.utf8.starts(with: cookiePath.utf8) else { return false }
        if path.utf8.count == cookiePath.utf8.count { return true }
        return cookiePath.utf8.last == UInt8(ascii: "/")
            || path.utf8.dropFirst(cookiePath.utf8.count).first == UInt8(ascii: "/")
    }
}
