import Foundation

extension HTTPCookieStorage {
    /// Keeps the cookies of an answer to the task's current request that the policy and the rules let in.
    public func storeCookies(_ cookies: [HTTPCookie], for task: URLSessionTask) {
        let request = task.currentRequest
        self.setCookies(cookies, for: request?.url, mainDocumentURL: request?.mainDocumentURL)
    }

    /// Those that go along with the task's current request.
    /// - Parameter completionHandler: called before this returns.
    public func getCookiesFor(_ task: URLSessionTask, completionHandler: @escaping @Sendable ([HTTPCookie]?) -> Void) {
        let request = task.currentRequest
        completionHandler(request?.url.map { self.cookies(for: $0, mainDocumentURL: request?.mainDocumentURL) })
    }

    /// As `getCookiesFor(_:completionHandler:)`.
    public func cookies(for task: URLSessionTask) async -> [HTTPCookie]? {
        let request = task.currentRequest
        return request?.url.map { self.cookies(for: $0, mainDocumentURL: request?.mainDocumentURL) }
    }
}
