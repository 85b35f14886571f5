/// Names of fields in the spelling that everybody writes.
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
    private static let spellings = Dictionary(names.map { ($0.withLoweredLetters, $0) }) { first, _ in first }

    private static let usual = Set(names)

    /// `name` in the usual spelling if it is known, else as it is.
    static func spelling(of name: String) -> String {
        self.usual.contains(name) ? name : self.spellings[name.withLoweredLetters] ?? name
    }

    /// - Parameter name: as `spelling` gives it.
    static func isKnown(_ name: String) -> Bool { self.usual.contains(name) }
}
