import Foundation
import HTTPSemantics
import HTTPTransport

/// A cookie storage of a class of the program's own is asked for each task: it may take its time over the answer.
extension SessionCore {
    private var askedStorage: HTTPCookieStorage? {
        guard let storage = self.configuration.httpCookieStorage, type(of: storage) != HTTPCookieStorage.self
        else { return nil }
        return storage
    }

    /// Whether the cookies of a request are asked for; else they are taken from the storage.
    func asksForCookies(of request: URLRequest) -> Bool {
        self.askedStorage != nil && request.httpShouldHandleCookies && self.configuration.httpShouldSetCookies
    }

    /// - Parameters:
    ///   - task: whose current request is the one to be sent.
    ///   - answer: called once, on any thread.
    func askForCookies(of task: URLSessionTask, _ answer: @escaping @Sendable ([HTTPCookie]) -> Void) {
        let once = OnceAnswer<[HTTPCookie]?> { answer($0 ?? []) }
        guard let storage = self.askedStorage else { return once(nil) }
        storage.getCookiesFor(task) { once($0) }
    }

    /// Keeps the cookies of an answer, if the request, the session and the rules allow it.
    func keepCookies(_ lines: [HeaderField], from url: URL, request: URLRequest, of task: URLSessionTask) {
        guard lines.contains(where: { $0.isNamed("set-cookie") }) else { return }
        guard let storage = self.askedStorage else {
            return RequestDressing.keepCookies(lines, from: url, request: request, configuration: self.configuration)
        }
        let policy = self.configuration.httpCookieAcceptPolicy
        let asks = CookieRequest(url, mainDocumentURL: request.mainDocumentURL)
        guard request.httpShouldHandleCookies, policy != .never, policy == .always || asks?.isSameSite == true
        else { return }
        let cookies = RequestDressing.cookies(lines, from: url)
        if !cookies.isEmpty { storage.storeCookies(cookies, for: task) }
    }
}
