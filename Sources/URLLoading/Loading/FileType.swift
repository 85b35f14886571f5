/// Media types of files by what their names end in: those that programs meet most.
enum FileType {
    private static let known = [
        "txt": "text/plain", "html": "text/html", "htm": "text/html", "css": "text/css", "csv": "text/csv",
        "js": "text/javascript", "json": "application/json", "xml": "application/xml", "pdf": "application/pdf",
        "zip": "application/zip", "gz": "application/gzip", "png": "image/png", "jpg": "image/jpeg",
        "jpeg": "image/jpeg", "gif": "image/gif", "svg": "image/svg+xml", "webp": "image/webp", "mp3": "audio/mpeg",
        "mp4": "video/mp4", "wasm": "application/wasm",
    ]

    static func mediaType(_ pathExtension: String) -> String {
        self.known[pathExtension.withLoweredLetters] ?? "application/octet-stream"
    }
}
