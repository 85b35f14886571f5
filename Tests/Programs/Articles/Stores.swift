import Foundation
import URLLoading

/// The code of the article about cookies and caches, as it is printed there.
enum Stores {
    static func aSessionThatLeavesNoTrace() -> URLSession {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.httpCookieAcceptPolicy = .onlyFromMainDocumentDomain
        return URLSession(configuration: configuration)
    }

    static func setACookie(for url: URL) {
        guard let host = url.host,
            let cookie = HTTPCookie(properties: [.name: "theme", .value: "dark", .domain: host, .path: "/"])
        else { return }
        HTTPCookieStorage.shared.setCookie(cookie)
    }

    static func workOffline(_ url: URL) async throws -> Data {
        let request = URLRequest(url: url, cachePolicy: .returnCacheDataDontLoad)
        return try await URLSession.shared.data(for: request).0
    }

    static func aLargerCache() -> URLSessionConfiguration {
        let configuration = URLSessionConfiguration.default
        configuration.urlCache = URLCache(memoryCapacity: 16 << 20, diskCapacity: 200 << 20, diskPath: "pictures")
        return configuration
    }
}
