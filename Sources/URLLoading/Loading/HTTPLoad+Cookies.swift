import Foundation
import HTTPSemantics
import HTTPTransport

/// A cookie storage of a class of the program's own is asked for each task: it may take its time over the answer.
extension HTTPLoad {
    private var askedStorage: HTTPCookieStorage? {
        guard let storage = self.core.configuration.httpCookieStorage, type(of: storage) != HTTPCookieStorage.self
        else { return nil }
        return storage
    }

    /// Sends the request as it is now, once its cookies and its body are there.
    func send() {
        self.cookies = nil
        guard let storage = self.askedStorage, self.request.httpShouldHandleCookies,
            self.core.configuration.httpShouldSetCookies
        else { return self.sendBody() }
        self.transfer.requestChanged(self.request)
        let answer = OnceAnswer<[HTTPCookie]?>(
            self.awaiting { load, cookies in
                load.cookies = cookies ?? []
                load.sendBody()
            })
        storage.getCookiesFor(self.transfer.task) { answer($0) }
    }

    /// Keeps the cookies of an answer, before anybody is told of it.
    func keepCookies(_ lines: [HeaderField], from url: URL) {
        let policy = self.core.configuration.httpCookieAcceptPolicy
        guard let storage = self.askedStorage else {
            return RequestDressing.keepCookies(
                lines, from: url, request: self.request, configuration: self.core.configuration)
        }
        let asks = CookieRequest(url, mainDocumentURL: self.request.mainDocumentURL)
        guard self.request.httpShouldHandleCookies, policy != .never, policy == .always || asks?.isSameSite == true
        else { return }
        let cookies = RequestDressing.cookies(lines, from: url)
        if !cookies.isEmpty { storage.storeCookies(cookies, for: self.transfer.task) }
    }
}
