import WireText

/// Types of files by the end of their names.
package struct MediaType: Hashable, Sendable {
    /// Value of the field `Content-Type`.
    package let value: String
    /// Whether compressed copies of such files are worth a look.
    package let isCompressible: Bool

    private init(_ value: String, isCompressible: Bool) {
        self.value = value
        self.isCompressible = isCompressible
    }

    /// - Parameter path: the letter case of its ending does not matter. Files without a known ending are bytes.
    package init(ofFile path: String) {
        let name = path.split(separator: "/").last ?? ""
        let ending = name.lastIndex(of: ".").map { name[name.index(after: $0)...].loweredASCII } ?? ""
        self = Self.known[ending] ?? MediaType("application/octet-stream", isCompressible: false)
    }

    private static let known: [String: MediaType] = {
        var known: [String: MediaType] = [:]
        for (value, endings) in Self.text {
            let type = MediaType("\(value); charset=utf-8", isCompressible: true)
            for ending in endings.split(separator: " ") { known[String(ending)] = type }
        }
        for (value, isCompressible, endings) in Self.other {
            let type = MediaType(value, isCompressible: isCompressible)
            for ending in endings.split(separator: " ") { known[String(ending)] = type }
        }
        return known
    }()

    private static let text = [
        ("text/html", "html htm"),
        ("text/css", "css"),
        ("text/javascript", "js mjs"),
        ("text/plain", "txt text log"),
        ("text/markdown", "md"),
        ("text/csv", "csv"),
        ("text/vtt", "vtt"),
        ("text/calendar", "ics"),
        ("application/xhtml+xml", "xhtml"),
        ("application/xml", "xml"),
        ("application/atom+xml", "atom"),
        ("application/rss+xml", "rss"),
    ]

    private static let other = [
        ("application/json", true, "json map"),
        ("application/ld+json", true, "jsonld"),
        ("application/geo+json", true, "geojson"),
        ("application/manifest+json", true, "webmanifest"),
        ("application/wasm", true, "wasm"),
        ("application/pdf", false, "pdf"),
        ("application/zip", false, "zip"),
        ("application/gzip", false, "gz tgz"),
        ("application/x-tar", true, "tar"),
        ("application/zstd", false, "zst"),
        ("application/epub+zip", false, "epub"),
        ("image/svg+xml", true, "svg"),
        ("image/png", false, "png"),
        ("image/jpeg", false, "jpg jpeg"),
        ("image/gif", false, "gif"),
        ("image/webp", false, "webp"),
        ("image/avif", false, "avif"),
        ("image/x-icon", true, "ico"),
        ("image/bmp", true, "bmp"),
        ("audio/mpeg", false, "mp3"),
        ("audio/ogg", false, "oga ogg opus"),
        ("audio/wav", false, "wav"),
        ("audio/mp4", false, "m4a"),
        ("audio/flac", false, "flac"),
        ("audio/webm", false, "weba"),
        ("video/mp4", false, "mp4 m4v"),
        ("video/webm", false, "webm"),
        ("video/ogg", false, "ogv"),
        ("font/woff", false, "woff"),
        ("font/woff2", false, "woff2"),
        ("font/ttf", true, "ttf"),
        ("font/otf", true, "otf"),
    ]
}
