import Foundation
import HTTPSemantics

extension CookieRequest {
    /// - Returns: `nil` for a URL without a host, which has no cookies.
    init?(_ url: URL, mainDocumentURL: URL?, isNavigation: Bool = false) {
        guard let host = url.host(percentEncoded: false), !host.isEmpty else { return nil }
        let document = mainDocumentURL?.host(percentEncoded: false)
        self.init(
            host: host, path: url.path(percentEncoded: true),
            isSecure: ["https", "wss"].contains(url.scheme?.withLoweredLetters ?? ""),
            isSameSite: document.map { CookieDomain.areSameSite(host, $0, suffixes: .singleLabels) } ?? true,
            isSafeNavigation: isNavigation)
    }
}
