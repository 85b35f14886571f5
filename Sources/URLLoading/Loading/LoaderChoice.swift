import Foundation

/// Who loads a request: a protocol of the program, or what is built in for its scheme.
enum LoaderChoice {
    static func loader(
        for request: URLRequest, body: TaskBody, transfer: Transfer
    ) -> Result<any Loader, URLError> {
        if let refusal = transfer.core.refusal(of: request.url) { return .failure(refusal) }
        guard let url = request.url, let scheme = url.scheme?.withLoweredLetters else {
            return self.refusal(.unsupportedURL, request, "There is no URL, or it has no scheme.")
        }
        if let loader = ProtocolLoad.loader(for: request, transfer: transfer) { return .success(loader) }
        switch scheme {
        case "http", "https": return .success(HTTPLoad(request, body: body, for: transfer))
        case "data": return .success(DataURLLoad(url, for: transfer))
        case "file": return .success(FileLoad(url, for: transfer))
        case "ws", "wss":
            return self.refusal(.unsupportedURL, request, "WebSockets are opened by webSocketTask(with:).")
        case "ftp": return self.refusal(.unsupportedURL, request, "FTP is not spoken here.")
        default: return self.refusal(.unsupportedURL, request, "unsupported URL")
        }
    }

    private static func refusal(
        _ code: URLError.Code, _ request: URLRequest, _ text: String
    ) -> Result<any Loader, URLError> {
        .failure(LoadFailure.error(code, url: request.url, text: text))
    }
}
