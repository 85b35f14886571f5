import StreamTransport
import WireText

/// The names in a directory as a page of links.
struct DirectoryListing {
    let text: String

    let fields = [
        FieldLine("Content-Type", "text/html; charset=utf-8"), FieldLine("X-Content-Type-Options", "nosniff"),
        FieldLine("Content-Security-Policy", "default-src 'none'; img-src data:"),
    ]

    /// - Parameter isWhole: whether the directory has no more names.
    init(_ folder: FileName, _ entries: [OpenFile.Entry], isWhole: Bool) {
        let isTop = folder.path.isEmpty
        let served = entries.filter { FileName.isServed($0.name, isFirst: isTop) }
        let sorted = served.sorted { ($0.isFolder ? 0 : 1, $0.name) < ($1.isFolder ? 0 : 1, $1.name) }
        var rows = sorted.map { Self.row($0.name + ($0.isFolder ? "/" : "")) }
        if !isTop { rows.insert("<li><a href=\"../\">../</a></li>", at: 0) }
        let note = isWhole ? "" : "<p>There are more names than this page shows.</p>"
        let title = Self.escaped("/" + folder.path)
        self.text = """
            <!DOCTYPE html>
            <html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
            <link rel="icon" href="data:,"><meta name="color-scheme" content="light dark"><title>\(title)</title></head><body><h1>\(title)</h1><ul>
            \(rows.joined(separator: "\n"))
            </ul>\(note)</body></html>

            """
    }

    private static func row(_ name: String) -> String {
        // A reference without `./` could be read as one with a scheme.
        let link = PercentCoding.encoded(name) { $0.isUnreserved || $0 == UInt8(ascii: "/") }
        return "<li><bdi><a href=\"./\(link)\">\(Self.escaped(name))</a></bdi></li>"
    }

    private static func escaped(_ text: String) -> String {
        // Most names have none of these characters, and `replacing` would take most of the turn for a long list.
        guard text.utf8.contains(where: { "&<>\"".utf8.contains($0) }) else { return text }
        return text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;")
            .replacing("\"", with: "&quot;")
    }
}
