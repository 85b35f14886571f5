import Foundation

/// An HTTP request in resume data, without its body.
struct StoredRequest: Codable {
    let url: String
    let mainDocumentURL: String?
    let method: String
    let fields: [String: String]
    let timeout: Double?
    let cachePolicy: UInt
    let networkServiceType: UInt
    let handlesCookies: Bool
    /// The raw value of `NetworkRestrictions`; missing in older resume data.
    let restrictions: UInt8?

    /// - Returns: `nil` if it is not an HTTP request.
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
        self.restrictions = request.restrictions.rawValue
    }

    /// - Returns: `nil` if the stored values cannot come from a request with one of the methods.
    func request(_ methods: String...) -> URLRequest? {
        guard let url = URL(string: self.url), Self.isOfHTTP(url), methods.contains(self.method) else { return nil }
        var request = URLRequest(url: url)
        request.httpMethod = self.method
        request.mainDocumentURL = self.mainDocumentURL.flatMap { URL(string: $0) }
        if !self.fields.isEmpty {
            request.allHTTPHeaderFields = self.fields
            // Invalid and duplicate fields are dropped by `URLRequest`; stored ones have neither.
            guard request.allHTTPHeaderFields?.count == self.fields.count else { return nil }
        }
        if let timeout = self.timeout, timeout.isFinite { request.timeoutInterval = timeout }
        request.cachePolicy = .init(rawValue: self.cachePolicy) ?? .useProtocolCachePolicy
        request.networkServiceType = .init(rawValue: self.networkServiceType) ?? .default
        request.httpShouldHandleCookies = self.handlesCookies
        request.restrictions = NetworkRestrictions(rawValue: self.restrictions ?? 0)
        return request
    }

    static func isOfHTTP(_ url: URL) -> Bool {
        guard let scheme = url.scheme?.lowercased(), scheme == "http" || scheme == "https" else { return false }
        return url.host?.isEmpty == false
    }
}
