import Foundation

/// A request of HTTP as resume data keeps it: without a body, since only what was got by GET can be resumed.
struct StoredRequest: Codable {
    let url: String
    let mainDocumentURL: String?
    let method: String
    let fields: [String: String]
    let timeout: Double?
    let cachePolicy: UInt
    let networkServiceType: UInt
    let handlesCookies: Bool

    /// - Returns: `nil` for a request that is not of HTTP.
    init?(_ request: URLRequest) {
        guard let url = request.url, Self.isOfHTTP(url) else { return nil }
        self.url = url.absoluteString
        self.mainDocumentURL = request.mainDocumentURL?.absoluteString
        self.method = request.httpMethod ?? "GET"
        self.fields = request.allHTTPHeaderFields ?? [:]
        self.timeout = request.chosenTimeout
        self.cachePolicy = request.cachePolicy.rawValue
        self.networkServiceType = request.networkServiceType.rawValue
        self.handlesCookies = request.httpShouldHandleCookies
    }

    /// The request again; `nil` for what no request was.
    var request: URLRequest? {
        guard let url = URL(string: self.url), Self.isOfHTTP(url), self.method == "GET" else { return nil }
        var request = URLRequest(url: url)
        request.mainDocumentURL = self.mainDocumentURL.flatMap { URL(string: $0) }
        if !self.fields.isEmpty {
            request.allHTTPHeaderFields = self.fields
            // A request holds no field that cannot be sent, and none twice.
            guard request.allHTTPHeaderFields?.count == self.fields.count else { return nil }
        }
        if let timeout = self.timeout, timeout.isFinite { request.timeoutInterval = timeout }
        request.cachePolicy = .init(rawValue: self.cachePolicy) ?? .useProtocolCachePolicy
        request.networkServiceType = .init(rawValue: self.networkServiceType) ?? .default
        request.httpShouldHandleCookies = self.handlesCookies
        return request
    }

    private static func isOfHTTP(_ url: URL) -> Bool {
        guard let scheme = url.scheme?.lowercased(), scheme == "http" || scheme == "https" else { return false }
        return url.host?.isEmpty == false
    }
}
