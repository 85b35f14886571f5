import Foundation
import HTTPSemantics
import HTTPTransport

/// Loads a `data:` URL: its content is in the address.
final class DataURLLoad: Loader, @unchecked Sendable {
    private let url: URL
    private let transfer: Transfer

    init(_ url: URL, for transfer: Transfer) {
        self.url = url
        self.transfer = transfer
    }

    func start() {
        self.transfer.core.pool.executeLater {
            guard let content = DataURL(self.url.absoluteString) else {
                return self.transfer.failed(
                    LoadFailure.error(.badURL, url: self.url, text: "The data URL cannot be read."))
            }
            let response = URLResponse(
                url: self.url, mimeType: content.mediaType, expectedContentLength: content.content.count,
                textEncodingName: content.charset)
            self.transfer.noteLocal(response, bytes: content.content.count)
            self.transfer.give(response, Data(content.content))
        }
    }

    func stop() {}
    func pull(_ count: Int) {}
    func hold(_ isHeld: Bool) {}
    func setPriority(_ priority: Float) {}
}
