import WireText

/// The page of `sluice serve`: one document without outside resources.
enum PageText {
    /// Permits the page's own style and script, and connections to where it came from, and nothing else. Scripts of its
    /// origin are for the browser's console, which can import the client of the chat.
    static let policy: String = [
        "default-src 'none'", "script-src 'self' '\(Self.source(PageProgram.text))'",
        "style-src '\(Self.source(PageStyle.text))'", "connect-src 'self'", "img-src data:", "base-uri 'none'",
        "form-action 'none'", "frame-ancestors 'none'",
    ].joined(separator: "; ")

    private static func source(_ text: String) -> String {
        "sha256-" + Base64.encoded(MessageDigest.of(Array(text.utf8), by: .sha256))
    }

    static let page = PageMarkup.text.replacing("{style}", with: PageStyle.text)
        .replacing("{program}", with: PageProgram.text)
}
